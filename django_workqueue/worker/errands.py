"""What running jobs want written while they run, done by the heartbeat on its own connection: theirs may be busy."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from uuid import UUID

from ..domain.outcomes import ClaimedJob

PROGRESS_SECONDS = 0.5
"""The shortest time between two writes of one job's progress."""

Attempt = tuple[UUID, int]
"""A job and the lease under which it runs."""


class Errands:
    """Progress to be stored, where the last value wins, and leases to be renewed at once. Thread-safe."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._lock = threading.Lock()
        self._progress: dict[Attempt, str] = {}
        self._written_at: dict[Attempt, float] = {}
        self._renewals: deque[tuple[ClaimedJob, Future[bool]]] = deque()

    # -- the jobs' side ------------------------------------------------------------------------------------------

    def report(self, job: ClaimedJob, progress: str) -> None:
        """Have ``progress`` stored. Does not wait for it."""
        attempt = (job.id, job.lease_id)
        with self._lock:
            is_first = attempt not in self._progress
            self._progress[attempt] = progress
        if is_first:
            self.wake()

    def renew(self, job: ClaimedJob) -> Future[bool]:
        """Have the lease of ``job`` renewed now. The answer is whether the job is to be cancelled."""
        answer: Future[bool] = Future()
        self._renewals.append((job, answer))
        self.wake()
        return answer

    def wake(self) -> None:
        """Make the heartbeat look now."""
        self._woken.set()

    # -- the heartbeat's side ------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        """Wait until there is something to do, at most for ``seconds``."""
        now = time.monotonic()
        with self._lock:
            due = [self._written_at.get(attempt, -PROGRESS_SECONDS) + PROGRESS_SECONDS for attempt in self._progress]
        self._woken.wait(max(0.0, min([*due, now + seconds]) - now))
        self._woken.clear()

    def renewals(self) -> Iterator[tuple[ClaimedJob, Future[bool]]]:
        """Take the renewals that are asked for."""
        while self._renewals:
            yield self._renewals.popleft()

    def write_progress(self, write: Callable[[UUID, int, str], object]) -> None:
        """Write each progress whose time has come. One that could not be written is kept, unless a newer one came."""
        now = time.monotonic()
        with self._lock:
            self._written_at = {each: at for each, at in self._written_at.items() if at > now - PROGRESS_SECONDS}
            due = {each: self._progress.pop(each) for each in list(self._progress) if each not in self._written_at}
        for attempt, progress in due.items():
            try:
                write(*attempt, progress)
            except BaseException:
                with self._lock:
                    self._progress = {**due, **self._progress}
                raise
            self._written_at[attempt] = now
