"""Where claimed jobs wait for a slot, run and leave their outcomes: what the dispatcher and the executors share."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar
from uuid import UUID

from ..domain.outcomes import ClaimedJob, Settlement

FLUSH_SIZE = 100
"""Outcomes that are worth a statement at once."""
PATIENCE_SECONDS = 0.01
"""How long a claimed job waits before one more executor is called in."""
MOST_AT_ONCE = 32
"""Jobs that one executor takes in one go."""


Waiting = tuple[ClaimedJob, float]
"""A claimed job, and since when it waits."""
T = TypeVar("T")


class Desk:
    """
    One executor's place at the board, with the jobs that it has in front of it.

    A lock for every job costs more than a short job does. So an executor takes several at once when more wait than
    there are slots; it goes through them, and leaves outcomes, by operations of deque and dict that are atomic in
    themselves. What it has not started can still be taken back.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self.jobs: deque[Waiting] = deque()

    def take(self) -> ClaimedJob | None:
        """Wait for a job, mark it as running and return it; None when the board is closed."""
        while True:
            if (job := self.next()) is not None:
                return job
            if not self._board.refill(self):
                return None

    def next(self) -> ClaimedJob | None:
        """Mark the next job at this desk as running and return it; None when there is none."""
        while self.jobs:
            try:
                job, _ = self.jobs.popleft()
            except IndexError:  # taken back meanwhile
                break
            if self._board.start(job):
                return job
        return None

    def finish(self, settlement: Settlement) -> None:
        """Leave a job's outcome and free its slot."""
        self._board.finish(settlement, more=bool(self.jobs))


class Board:
    """
    Thread-safe. ``wake`` is called when the dispatcher should look: a slot is free, or enough outcomes are there.

    For an instant between waiting and running a job is neither: whether nothing is left at all is a question to
    HeldLeases.
    """

    def __init__(self, slots: int, *, may_start: Callable[[ClaimedJob], bool], wake: Callable[[], None]) -> None:
        self.slots = slots
        self._may_start = may_start
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: deque[Waiting] = deque()
        self._desks: list[Desk] = []
        self._running: dict[UUID, float] = {}
        self._unstartable: deque[ClaimedJob] = deque()
        self._outcomes: deque[Settlement] = deque()
        self._closed = False
        self.abandoned: dict[UUID, Settlement] = {}
        """What is to be recorded of jobs that do not end although they were told to, once their process is about to."""

    # -- the executors' side -------------------------------------------------------------------------------------

    def open_desk(self) -> Desk:
        """Return a place for one more executor. Call it before the executors start."""
        desk = Desk(self)
        self._desks.append(desk)
        return desk

    def refill(self, desk: Desk) -> bool:
        """Wait for jobs and put some on the desk; False when the board is closed."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            share = max(1, min(MOST_AT_ONCE, len(self._waiting) // self.slots))
            desk.jobs.extend(self._waiting.popleft() for _ in range(share))
        return True

    def start(self, job: ClaimedJob) -> bool:
        """Mark a job as running, or put it aside when its lease cannot hold any more."""
        if self._may_start(job):
            self._running[job.id] = time.monotonic()
            return True
        self._unstartable.append(job)
        return False

    def finish(self, settlement: Settlement, *, more: bool) -> None:
        """Keep a job's outcome; ``more`` says that its executor has other jobs in front of it."""
        self._running.pop(settlement.job.id, None)
        self._outcomes.append(settlement)
        if not (more or self._waiting) or len(self._outcomes) >= FLUSH_SIZE:
            self._wake()

    # -- the dispatcher's side -----------------------------------------------------------------------------------

    def put(self, jobs: Collection[ClaimedJob], *, executors: int | None = None) -> None:
        """
        Hand out claimed jobs, in order, to as many executors as they are or to fewer.

        Threads that only compute take turns on one interpreter: for work of a millisecond, one is faster than eight.
        """
        now = time.monotonic()
        with self._changed:
            self._waiting.extend((job, now) for job in jobs)
            self._changed.notify(min(len(jobs), executors or len(jobs)))

    def call_in(self) -> None:
        """Wake one more executor if jobs wait longer than was thought."""
        with self._changed:
            if self._waiting and self._waiting[0][1] < time.monotonic() - PATIENCE_SECONDS:
                self._changed.notify()

    def outcomes(self) -> list[Settlement]:
        """Take the outcomes that are there."""
        return list(_drained(self._outcomes))

    def unstarted(self, older_than: float = 0.0) -> list[ClaimedJob]:
        """Take back jobs that waited for a slot for ``older_than`` seconds, or whose lease cannot hold any more."""
        limit = time.monotonic() - older_than
        stale = list(_drained(self._unstartable))
        with self._changed:
            for jobs in (self._waiting, *(desk.jobs for desk in self._desks)):
                stale += _older(jobs, limit)
        return stale

    def started_at(self, job: ClaimedJob) -> float | None:
        """Return since when the job runs, by the monotonic clock; None when it does not."""
        return self._running.get(job.id)

    def close(self) -> None:
        """Let executors end once their job is done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def run_seconds(self, job: ClaimedJob) -> float:
        """Return for how many seconds the job has run; 0 when it does not run."""
        begun = self._running.get(job.id)
        return 0.0 if begun is None else time.monotonic() - begun

    def longest_run(self) -> float:
        """Return for how many seconds the job that runs longest has; 0 when none does."""
        # A copy: executors start and finish meanwhile.
        begun = list(self._running.values())
        return time.monotonic() - min(begun) if begun else 0.0

    @property
    def waiting(self) -> int:
        """Claimed jobs without a slot."""
        return len(self._waiting) + sum(len(desk.jobs) for desk in self._desks)

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


def _drained(items: deque[T]) -> Iterator[T]:
    """Yield and remove what is in a deque to which other threads append."""
    with contextlib.suppress(IndexError):
        while True:
            yield items.popleft()


def _older(jobs: deque[Waiting], limit: float) -> Iterator[ClaimedJob]:
    """Yield and remove the jobs that wait since ``limit`` or before; the executor takes from the same end."""
    with contextlib.suppress(IndexError):
        while jobs[0][1] <= limit:
            yield jobs.popleft()[0]
