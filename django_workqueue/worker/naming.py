"""A stable name: one living process has it, and whoever starts under it adopts what a dead predecessor held."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path

from ..lifecycle import operate
from ..lifecycle.reap import adopt
from ..models import Worker
from ..models.worker import WorkerState
from ..store import Store
from .shutdown import StopRequest

LOOK_SECONDS = 0.5
"""How often a worker that waits for its name looks again."""

# Of workers in this very process, as tests have them: between two with one process id only this can tell.
_living: set[str] = set()


class NameTakenError(Exception):
    """Another living process has the name."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(
            f"The name {worker.name!r} belongs to a living worker: host {worker.host}, pid {worker.pid}, last seen "
            f"{worker.seen_at:%Y-%m-%d %H:%M:%S %Z}. Stop that one first, or choose another --name."
        )


class Standing(Enum):
    """Whether the process of a worker row still runs."""

    LIVES = "lives"
    GONE = "gone"
    UNKNOWN = "unknown"


def origin_of(pid: int | str) -> str:
    """
    Return where and when a process began: boot, process namespace and start time, which no other process shares.

    Empty where the system does not tell, and for a process that is not there or has ended and waits for its parent.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").stat().st_ino
        # The command, in parentheses, may have spaces and parentheses in it.
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else f"{boot}:{namespace}:{fields[18]}"


def standing(worker: Worker) -> Standing:
    """Judge a worker row by the processes of this machine; UNKNOWN for another machine's or container's."""
    if worker.pk in _living:
        return Standing.LIVES
    own = origin_of("self")
    if not own or worker.origin.rpartition(":")[0] != own.rpartition(":")[0]:
        return Standing.UNKNOWN
    # One with this process's own id is what this process was before it executed itself anew.
    lives = worker.pid != os.getpid() and worker.origin == origin_of(worker.pid)
    return Standing.LIVES if lives else Standing.GONE


class Name:
    """
    The name of a worker that starts.

    ``siblings`` are ids of living workers that leave it to this one; ``beat`` is called while it waits.
    """

    def __init__(
        self,
        store: Store,
        stop: StopRequest,
        say: Callable[[str], None],
        *,
        siblings: Collection[str] = (),
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._stop = stop
        self._say = say
        self._siblings = siblings
        self._beat = beat
        self._first_sights: dict[str, datetime] = {}

    def take(self, row: Callable[[], Worker]) -> bool:
        """
        Register the worker of ``row`` under its name and adopt what its predecessor held.

        Waits while the predecessor is stopping, and while it cannot be told whether it lives. False when told to stop
        meanwhile; raises NameTakenError when it lives.
        """
        while not self._stop.requested:
            self._beat()
            worker = row()
            gone = self._predecessors(worker.name)
            if gone is None:
                self._stop.wait(LOOK_SECONDS)
            elif self._store.register_worker(worker, replacing=gone, renaming=self._siblings):
                _living.add(worker.pk)
                self._adopt(gone)
                return True
        return False

    def _predecessors(self, name: str) -> list[Worker] | None:
        """Return the dead worker of this name, if there is one; None while one has it that may live."""
        found = self._store.namesake(name)
        if found is None or found[0].pk in self._siblings:
            return []
        return [found[0]] if self._is_gone(*found) else None

    def _is_gone(self, other: Worker, silent_for: timedelta) -> bool:
        known = standing(other)
        if known is Standing.GONE or (known is Standing.UNKNOWN and silent_for > operate.silence()):
            return True
        is_new = other.pk not in self._first_sights
        lives = known is Standing.LIVES or self._first_sights.setdefault(other.pk, other.seen_at) != other.seen_at
        if lives and other.state != WorkerState.STOPPING:
            raise NameTakenError(other)
        if is_new:
            state = "is stopping" if lives else "may still live"
            self._say(f"Waiting for the name {other.name!r}: worker {other.pk} on host {other.host} {state}.")
            self._first_sights[other.pk] = other.seen_at
        return False

    def _adopt(self, gone: Collection[Worker]) -> None:
        adopted = adopt(self._store, [worker.pk for worker in gone])
        if adopted:
            self._say(f"Adopted {len(adopted)} jobs from {', '.join(sorted({each.worker for each in adopted}))}.")


def forget(worker_id: str) -> None:
    """Note that a worker of this process has ended."""
    _living.discard(worker_id)
