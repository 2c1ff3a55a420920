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
MOST_AT_ONCE = 32
"""Jobs that one executor takes in one go."""


Waiting = tuple[ClaimedJob, float]
"""A claimed job, and since when it waits."""
T = TypeVar("T")


class _Chunk(threading.local):
    """The jobs that one executor has in front of it. Others reach them through the board's list."""

    def __init__(self, chunks: list[deque[Waiting]]) -> None:
        self.jobs: deque[Waiting] = deque()
        chunks.append(self.jobs)


class Board:
    """
    Thread-safe. ``wake`` is called when the dispatcher should look: a slot is free, or enough outcomes are there.

    A lock for every job costs more than a short job does. So an executor takes several at once when more wait than
    there are slots; it goes through them, and leaves outcomes, by operations of deque and dict that are atomic in
    themselves. What it has not started can still be taken back. For an instant between the two a job is neither waiting
    nor running: whether nothing is left at all is a question to HeldLeases.
    """

    def __init__(self, slots: int, *, may_start: Callable[[ClaimedJob], bool], wake: Callable[[], None]) -> None:
        self.slots = slots
        self._may_start = may_start
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: deque[Waiting] = deque()
        self._chunks: list[deque[Waiting]] = []
        self._mine = _Chunk(self._chunks)
        self._running: dict[UUID, float] = {}
        self._unstartable: deque[ClaimedJob] = deque()
        self._outcomes: deque[Settlement] = deque()
        self._closed = False

    # -- the executors' side -------------------------------------------------------------------------------------

    def take(self) -> ClaimedJob | None:
        """Wait for a job, mark it as running and return it; None when the board is closed."""
        mine = self._mine.jobs
        while True:
            try:
                job, _ = mine.popleft()
            except IndexError:
                if not self._refill(mine):
                    return None
                continue
            if self._may_start(job):
                self._running[job.id] = time.monotonic()
                return job
            self._unstartable.append(job)

    def _refill(self, mine: deque[Waiting]) -> bool:
        """Wait for jobs and put some in front of the calling executor; False when the board is closed."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            share = max(1, min(MOST_AT_ONCE, len(self._waiting) // self.slots))
            mine.extend(self._waiting.popleft() for _ in range(share))
        return True

    def finish(self, settlement: Settlement) -> None:
        """Leave a job's outcome and free its slot."""
        self._running.pop(settlement.job.id, None)
        self._outcomes.append(settlement)
        out_of_work = not self._waiting and not self._mine.jobs
        if out_of_work or len(self._outcomes) >= FLUSH_SIZE:
            self._wake()

    # -- the dispatcher's side -----------------------------------------------------------------------------------

    def put(self, jobs: Collection[ClaimedJob]) -> None:
        """Hand out claimed jobs, in order."""
        now = time.monotonic()
        with self._changed:
            self._waiting.extend((job, now) for job in jobs)
            self._changed.notify(len(jobs))

    def outcomes(self) -> list[Settlement]:
        """Take the outcomes that are there."""
        return list(_drained(self._outcomes))

    def unstarted(self, older_than: float = 0.0) -> list[ClaimedJob]:
        """Take back jobs that waited for a slot for ``older_than`` seconds, or whose lease cannot hold any more."""
        limit = time.monotonic() - older_than
        stale = list(_drained(self._unstartable))
        with self._changed:
            for jobs in (self._waiting, *self._chunks):
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

    @property
    def waiting(self) -> int:
        """Claimed jobs without a slot."""
        return len(self._waiting) + sum(map(len, self._chunks))

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
