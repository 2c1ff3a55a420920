"""The leases that this worker holds, and which of their jobs are still to be settled."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from ..conf import get_settings
from ..domain.outcomes import ClaimedJob

# A lost lease is reaped within seconds; far more than this are never on their way to it.
_LOST_REMEMBERED = 1000


@dataclass(slots=True)
class _Lease:
    queue: str
    length: float
    """Seconds between a renewal and the expiry."""
    valid_until: float
    """By the monotonic clock, and rather too early than too late."""
    outstanding: dict[UUID, ClaimedJob] = field(default_factory=dict)
    closing: bool = False
    spoilt: bool = False


class HeldLeases:
    """Shared by the dispatcher, which adds and settles, the heartbeat, which renews, and the executors, which ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases: dict[int, _Lease] = {}
        # As an ordered set, oldest first.
        self._lost: dict[int, None] = {}

    def add(self, jobs: Iterable[ClaimedJob], asked_at: float) -> None:
        """Note a claim's jobs. ``asked_at`` is the monotonic time before it: the lease cannot be older."""
        with self._lock:
            for job in jobs:
                lease = self._leases.get(job.lease_id) or self._open(job, asked_at)
                lease.outstanding[job.id] = job

    def _open(self, job: ClaimedJob, asked_at: float) -> _Lease:
        length = get_settings().queue(job.queue).lease.total_seconds()
        lease = self._leases[job.lease_id] = _Lease(job.queue, length, asked_at + length)
        return lease

    @contextmanager
    def closing(self, lease_id: int, job_ids: Collection[UUID]) -> Iterator[bool]:
        """
        Settle these of its jobs in the block, which is told whether nothing else is left of the lease.

        Meanwhile the heartbeat leaves the lease out: one that the settling statement removes would look lost to it.
        """
        with self._lock:
            lease = self._leases.get(lease_id)
            last = lease is not None and not lease.spoilt and len(lease.outstanding) == len(job_ids)
            if lease is not None:
                lease.closing = last
        try:
            yield last
        finally:
            if lease is not None:
                lease.closing = False

    def spoil(self, lease_id: int) -> None:
        """Note that a job was left to this lease, which must lapse and not be removed with the last of the others."""
        with self._lock:
            if lease := self._leases.get(lease_id):
                lease.spoilt = True
                # Without it a search for claims whose answer was lost would give the job back, its attempt not counted.
                self._remember(lease_id)

    def settled(self, lease_id: int, job_ids: Collection[UUID]) -> None:
        """Note that these of its jobs need the lease no more."""
        with self._lock:
            lease = self._leases.get(lease_id)
            if lease is None:
                return
            if len(lease.outstanding) == len(job_ids):
                del self._leases[lease_id]
            else:
                for job_id in job_ids:
                    del lease.outstanding[job_id]

    def jobs(self) -> list[ClaimedJob]:
        """Return every job that is neither settled nor lost."""
        with self._lock:
            return [job for lease in self._leases.values() for job in lease.outstanding.values()]

    def queues(self) -> dict[int, str]:
        """Return the ids of the leases that are to be renewed, with their queues."""
        with self._lock:
            return {pk: lease.queue for pk, lease in self._leases.items() if not lease.closing}

    def renewed(self, lease_ids: Iterable[int], asked_at: float) -> None:
        """Note that these leases were renewed by a statement sent at monotonic time ``asked_at``."""
        with self._lock:
            for pk in lease_ids:
                if lease := self._leases.get(pk):
                    lease.valid_until = asked_at + lease.length

    def lost(self, lease_ids: Iterable[int]) -> None:
        """Let go of leases that no longer hold."""
        with self._lock:
            for pk in lease_ids:
                self._leases.pop(pk, None)
                self._remember(pk)

    def refused(self, lease_id: int) -> None:
        """Remember a lease that did not hold for one of its jobs any more; for others it may."""
        with self._lock:
            self._remember(lease_id)

    def _remember(self, lease_id: int) -> None:
        self._lost[lease_id] = None
        if len(self._lost) > _LOST_REMEMBERED:
            del self._lost[next(iter(self._lost))]

    def known(self) -> set[int]:
        """
        Return the ids of the leases that are held or were lost.

        A lost one is still in the database until it is reaped, and its jobs were started: they are the reaper's, to be
        counted as an attempt, and must not be taken for those of a claim whose answer never came.
        """
        with self._lock:
            return {*self._leases, *self._lost}

    def may_start(self, job: ClaimedJob) -> bool:
        """
        Whether ``job``'s lease can still hold, by this process's monotonic clock.

        A process that was stopped and goes on must not start what it claimed an hour ago. Only the database decides
        what is recorded; this keeps a job from being started that is surely somebody else's by now.
        """
        lease = self._leases.get(job.lease_id)
        return lease is not None and time.monotonic() < lease.valid_until

    def __len__(self) -> int:
        """Return the number of leases with work in hand."""
        return len(self._leases)
