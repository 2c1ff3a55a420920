"""Where claimed jobs wait for a slot, run and leave their outcomes: what the dispatcher and the executors share."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from ..domain.outcomes import ClaimedJob, Settlement

FLUSH_SIZE = 100
"""Outcomes that are worth a statement at once."""


@dataclass(frozen=True, slots=True)
class Running:
    """A job in a slot, and since when by the monotonic clock."""

    job: ClaimedJob
    since: float


class Board:
    """Thread-safe. ``wake`` is called when the dispatcher should look: a slot is free, or enough outcomes are there."""

    def __init__(self, slots: int, *, may_start: Callable[[ClaimedJob], bool], wake: Callable[[], None]) -> None:
        self.slots = slots
        self._may_start = may_start
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: deque[tuple[ClaimedJob, float]] = deque()
        self._running: dict[UUID, Running] = {}
        self._unstartable: list[ClaimedJob] = []
        self._outcomes: deque[Settlement] = deque()
        self._closed = False

    # -- the executors' side -------------------------------------------------------------------------------------

    def take(self) -> ClaimedJob | None:
        """Wait for a job, mark it as running and return it; None when the board is closed."""
        with self._changed:
            while True:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return None
                job, _ = self._waiting.popleft()
                if self._may_start(job):
                    self._running[job.id] = Running(job, time.monotonic())
                    return job
                self._unstartable.append(job)

    def finish(self, settlement: Settlement) -> None:
        """Leave a job's outcome and free its slot."""
        with self._changed:
            self._running.pop(settlement.job.id, None)
            self._outcomes.append(settlement)
            worth_a_look = not self._waiting or len(self._outcomes) >= FLUSH_SIZE
        if worth_a_look:
            self._wake()

    # -- the dispatcher's side -----------------------------------------------------------------------------------

    def put(self, jobs: Iterable[ClaimedJob]) -> None:
        """Hand out claimed jobs, in order."""
        now = time.monotonic()
        with self._changed:
            before = len(self._waiting)
            self._waiting.extend((job, now) for job in jobs)
            self._changed.notify(len(self._waiting) - before)

    def outcomes(self) -> list[Settlement]:
        """Take the outcomes that are there."""
        with self._changed:
            taken = list(self._outcomes)
            self._outcomes.clear()
        return taken

    def unstarted(self, older_than: float = 0.0) -> list[ClaimedJob]:
        """Take back jobs that waited for a slot for ``older_than`` seconds, or whose lease cannot hold any more."""
        limit = time.monotonic() - older_than
        with self._changed:
            stale, self._unstartable = self._unstartable, []
            while self._waiting and self._waiting[0][1] <= limit:
                stale.append(self._waiting.popleft()[0])
        return stale

    def abandon(self) -> list[Running]:
        """Take the running jobs off the board; their threads go on, but whatever they leave is refused."""
        with self._changed:
            abandoned = list(self._running.values())
            self._running.clear()
        return abandoned

    def close(self) -> None:
        """Let executors end once their job is done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Claimed jobs without a slot."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Jobs in a slot."""
        return len(self._running)

    @property
    def unsettled(self) -> int:
        """Outcomes that nobody has taken."""
        return len(self._outcomes)

    @property
    def free(self) -> int:
        """Slots that nothing runs in or waits for."""
        return max(0, self.slots - self.running - self.waiting)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, runs or is to be settled."""
        return not (self._waiting or self._running or self._outcomes or self._unstartable)
