"""Finding lanes with work and claiming jobs from them under one new lease."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import F, QuerySet

from ..domain.outcomes import ClaimedJob
from ..domain.rotation import LaneTurn
from ..domain.states import JobState
from ..models import Job, Lease
from .base import BaseStore

CLAIMED_COLUMNS = ClaimedJob._fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOrder:
    """What a worker asks for: up to ``limit`` jobs of ``queue``, at most ``quantum`` from each lane in turn."""

    worker: str
    queue: str
    lanes: Sequence[LaneTurn]
    limit: int
    quantum: int
    lease: timedelta
    max_lease: timedelta


class Claim(NamedTuple):
    """What one claim took. ``cut`` says that it left jobs it had found, to be claimed alone or after one that is."""

    jobs: list[ClaimedJob]
    cut: bool = False
    at: datetime | None = None
    """The database's time of the claim, where marks are of use."""


class Claiming(BaseStore):
    """Claims in the ORM, right on any database; each vendor's store replaces what must be fast there."""

    def ready_queues(self) -> list[str]:
        """Return the names of the queues that have a ready job, in order. One index descent for each."""
        return list(self._distinct(self._ready(), "queue"))

    def lanes(self, queue: str, *, after: str | None = None, limit: int = 1000) -> list[str]:
        """Return up to ``limit`` tenants with ready work in ``queue``, in order, beginning behind ``after``."""
        ready = self._ready().filter(queue=queue)
        if after is not None:
            ready = ready.filter(tenant__gt=after)
        return [tenant for _, tenant in zip(range(limit), self._distinct(ready, "tenant"), strict=False)]

    def has_ready(self, queue: str, tenant: str) -> bool:
        """Whether the lane has ready work. One index descent."""
        return self._ready().filter(queue=queue, tenant=tenant).exists()

    def claim(self, order: ClaimOrder) -> Claim:
        """
        Put up to ``order.limit`` ready jobs under one new lease of ``order.worker``, their attempt counted.

        Answers them in the order in which they are to run: the lanes' turn, then priority, then readiness. A job whose
        last lease lapsed comes alone. Empty when no lane has work; a claim that is rolled back was never made.
        """
        with self.transaction():
            found = self._pick(order)
            picked = found[: together([job.lapses for job in found])]
            if not picked:
                return Claim([])
            lease = self._open_lease(order)
            self._ready().filter(pk__in=[job.pk for job in picked]).update(
                state=JobState.LEASED,
                lease=lease,
                attempts=F("attempts") + 1,
            )
        return Claim([_claimed(job, lease.pk) for job in picked], cut=len(picked) < len(found))

    def _ready(self) -> QuerySet[Job]:
        return Job.objects.using(self.alias).ready()

    def _distinct(self, jobs: QuerySet[Job], column: str) -> Iterator[str]:
        """Walk the distinct values of the index's next column by descents: DISTINCT would scan the backlog."""
        value = jobs.order_by(column).values_list(column, flat=True).first()
        while value is not None:
            yield value
            value = jobs.filter(**{f"{column}__gt": value}).order_by(column).values_list(column, flat=True).first()

    def _pick(self, order: ClaimOrder) -> list[Job]:
        """Return the jobs to claim. Marks are not used: where rows are deleted in place, nothing is stepped over."""
        picked: list[Job] = []
        for lane in order.lanes:
            room = min(order.quantum, order.limit - len(picked))
            if room <= 0:
                break
            ready = self._ready().filter(queue=order.queue, tenant=lane.tenant).order_by("rank", "ready_at", "id")
            picked += self._unheld(ready)[:room]
        return picked

    def _open_lease(self, order: ClaimOrder) -> Lease:
        now = self.now()
        return Lease.objects.using(self.alias).create(
            worker=order.worker,
            queue=order.queue,
            acquired_at=now,
            renewed_at=now,
            expires_at=now + min(order.lease, order.max_lease),
            deadline_at=now + order.max_lease,
        )


def together(lapses: Sequence[int]) -> int:
    """
    Return how many jobs with these lapses in a row, from the first on, may share a lease.

    A batch is cut before the first job whose last lease lapsed, or to that job alone. Whoever shares a lease with a job
    that kills its worker lapses with it. Claimed alone, it pays alone.
    """
    return next((max(place, 1) for place, count in enumerate(lapses) if count), len(lapses))


def _claimed(job: Job, lease_id: int) -> ClaimedJob:
    values: dict[str, Any] = {name: getattr(job, name) for name in CLAIMED_COLUMNS}
    return ClaimedJob(**values | {"attempts": job.attempts + 1, "lease_id": lease_id})
