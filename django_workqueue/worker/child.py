"""One process under a supervisor, as the supervisor sees it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .health import LIVE_SECONDS
from .link import ENVIRONMENT, Report, Welcome, Wire


class Child:
    """
    A fresh interpreter with nothing inherited but its end of the link.

    In a process group of its own: the terminal's Ctrl-C goes to the supervisor alone, which passes it on.
    """

    def __init__(self, command: Sequence[str], welcome: Welcome) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.wire = Wire(ours)
        self.wire.send(asdict(welcome))
        self.report = Report()
        self.is_silent = False
        self.heard_at = time.monotonic()
        self._ready_at: float | None = None
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                env={**os.environ, ENVIRONMENT: str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                process_group=0,
            )

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def served_seconds(self) -> float | None:
        """Seconds since it first served; None while it has not. A start takes what the project and the machine take."""
        return None if self._ready_at is None else time.monotonic() - self._ready_at

    @property
    def silence(self) -> float:
        """Seconds since its last report, or its start."""
        return time.monotonic() - self.heard_at

    @property
    def is_live(self) -> bool:
        """Whether it reports, and its dispatcher goes its rounds."""
        return self.silence < LIVE_SECONDS and self.report.age < LIVE_SECONDS

    @property
    def facts(self) -> dict[str, Any]:
        """What a probe is told of it."""
        return {
            "pid": self.pid,
            "worker": self.report.worker,
            "ready": self.report.ready,
            "database": self.report.reachable,
            "round_seconds_ago": round(self.report.age + self.silence, 1),
        }

    def hear(self) -> None:
        """Take in what the process has reported."""
        reports = self.wire.receive()
        self.is_silent = reports is None
        if reports:
            self.heard_at = time.monotonic()
            self.report = Report(**reports[-1])
            if self._ready_at is None and any(report.get("ready") for report in reports):
                self._ready_at = self.heard_at

    def order(self, order: str) -> None:
        """Tell the process what to do: "retire", "stop" or "now"."""
        self.wire.send(order)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        code = self._process.poll()
        if code is not None:
            # What it said last may not have been heard.
            self.hear()
        return code

    def kill(self) -> None:
        """End the process by SIGKILL."""
        self._process.kill()

    def close(self) -> None:
        """Close the link."""
        self.wire.close()
