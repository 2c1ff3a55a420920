"""The link between a supervisor and one of its processes: reports go up, orders come down, and its end is heard."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from .thread import WorkerThread

ENVIRONMENT = "_WORKQUEUE_LINK"
"""The variable that tells a process that it is supervised: the number of the inherited file."""
REPORT_SECONDS = 1.0
_MOST_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """What a process is told at its start."""

    number: int
    """Which of the processes it is, from 1."""
    siblings: list[str] = field(default_factory=list)
    """Ids of the workers whose place it takes while they still live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a process says of itself, every second and whenever something changes."""

    worker: str = ""
    ready: bool = False
    """Whether it is registered and serves its queues."""
    stopping: bool = False
    dismissed: bool = False
    """Whether a person wants it to stop, and so no other in its place."""
    worn: str = ""
    """Why it should be replaced; empty when it need not be."""
    age: float = 0.0
    """Seconds since the last round of its dispatcher began."""
    reachable: bool = False
    """Whether that round found the database well."""


class Wire:
    """JSON values, one a line, over a stream socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._rest = b""

    def fileno(self) -> int:
        """Return the file to wait for."""
        return self._end.fileno()

    def send(self, value: Any) -> None:
        """Send a value, unless the other side is gone or has not read for a long time: nobody may wait for it."""
        try:
            self._end.send(json.dumps(value).encode() + b"\n", socket.MSG_DONTWAIT)
        except OSError:
            return

    def receive(self) -> list[Any] | None:
        """Return the values that are there, waiting for some if the socket does; None when the other side is gone."""
        try:
            received = self._end.recv(_MOST_BYTES)
        except BlockingIOError:
            return []
        except ConnectionError:
            received = b""
        if not received:
            return None
        *lines, self._rest = (self._rest + received).split(b"\n")
        return list(_decoded(lines))

    def close(self) -> None:
        """Let the other side hear that this one is gone."""
        self._end.close()


def _decoded(lines: list[bytes]) -> Iterator[Any]:
    """Yield the values; a line that was cut off, as the other side did not read for long, says nothing."""
    for line in lines:
        with contextlib.suppress(ValueError):
            yield json.loads(line)


class Link:
    """A supervised process's end."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        # A process may be ordered to stop as soon as it is welcomed.
        first, *self._orders = wire.receive() or [asdict(Welcome(number=1))]
        self.welcome = Welcome(**first)

    @classmethod
    def from_environment(cls) -> Self | None:
        """Return the link that this process was started with; None for one that nobody supervises."""
        # Taken out: a worker that a job starts is not supervised.
        number = os.environ.pop(ENVIRONMENT, "")
        if not number:
            return None
        end = socket.socket(fileno=int(number))
        end.set_inheritable(False)
        return cls(Wire(end))

    def close(self) -> None:
        """Let the supervisor hear that this process is about to end."""
        self._wire.close()

    def report(self, report: Report) -> None:
        """Send a report at once."""
        self._wire.send(asdict(report))

    def orders(self, seconds: float) -> list[str] | None:
        """Wait up to ``seconds`` for orders and return them; None when the supervisor is gone."""
        if self._orders:
            orders, self._orders = self._orders, []
            return orders
        readable, _, _ = select.select([self._wire], [], [], seconds)
        return self._wire.receive() if readable else []


class LinkThread(WorkerThread):
    """Reports every second, and carries out what the supervisor orders; when that one is gone, the order to stop."""

    def __init__(
        self,
        link: Link,
        report: Callable[[], Report],
        orders: dict[str, Callable[[], None]],
        on_crash: Callable[[], None],
    ) -> None:
        super().__init__("link", on_crash)
        self._link = link
        self._report = report
        self._orders = orders
        self._lock = threading.Lock()

    def work(self) -> None:
        """Listen for as long as there is a supervisor."""
        while (orders := self._link.orders(REPORT_SECONDS)) is not None:
            for order in orders:
                self._orders[order]()
            self.tell()
        self._orders["stop"]()

    def tell(self) -> None:
        """Report at once, from any thread."""
        with self._lock:
            self._link.report(self._report())
