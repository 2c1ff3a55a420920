"""
The few rows that an index leads to, found before everything else about them is asked.

Asked in one statement for the newest jobs in a state, the planner may go through all jobs from the newest on, for it
takes an index that has them in this order; where those in the state are few and old, that is the whole table. Here the
order is that of the index meant for them, and what comes is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from ..domain.states import JobState
from ..models import Job, Lease
from ..models.base import Literal
from .watch import Watching

FEW = 2000
"""Rows that are few enough to be named one by one in a statement."""

# As the partial indexes have it: a condition that is not theirs word for word proves nothing to the planner.
_STATES: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = MappingProxyType(
    {
        JobState.READY: ({"state": Literal(JobState.READY.value)}, ("queue", "tenant", "rank", "ready_at", "id")),
        JobState.SCHEDULED: ({"state": Literal(JobState.SCHEDULED.value)}, ("ready_at",)),
        JobState.BLOCKED: (
            {"state": Literal(JobState.BLOCKED.value), "concurrency_key__isnull": False},
            ("queue", "tenant", "concurrency_key", "rank", "ready_at", "id"),
        ),
        JobState.PARKED: ({"state": Literal(JobState.PARKED.value)}, ("task",)),
        JobState.LEASED: ({"lease__isnull": False}, ("lease",)),
    }
)


class Picking(Watching):
    """Reads that answer with ids, FEW at most."""

    def few_in_state(self, state: str, queue: str | None = None) -> list[UUID] | None:
        """Return the ids of all jobs in a state, or of those in one queue; None when they are more than FEW."""
        condition, order = _STATES[JobState(state)]
        rows = Job.objects.using(self.alias).filter(**condition)
        if queue is not None and order[0] == "queue":
            rows = rows.filter(queue=queue)
        found = _ids(rows.order_by(*order), FEW + 1)
        return found if len(found) <= FEW else None

    def few_with_key(self, key: str) -> list[UUID]:
        """Return the ids of live jobs with this dedupe key, in whatever queue and of whatever tenant."""
        rows = Job.objects.using(self.alias).filter(dedupe_key=key)
        # A key that is free while its job runs is in no index; but what runs is.
        held = rows.filter(lease__isnull=False, dedupe_until_start=True).order_by("lease")
        waiting = rows.exclude(dedupe_until_start=True, state=Literal(JobState.LEASED.value))
        return [*_ids(waiting.order_by("dedupe_key", "queue", "tenant"), FEW), *_ids(held, FEW)]

    def few_of_lease(self, lease_id: Any) -> list[UUID]:
        """Return the ids of the jobs that a lease covers. Raises ValueError for what is no lease's id."""
        return _ids(
            Job.objects.using(self.alias).filter(lease__isnull=False, lease__id=lease_id).order_by("lease"), FEW
        )

    def few_of_worker(self, worker: str) -> list[UUID]:
        """Return the ids of the jobs that a worker holds."""
        leases = Lease.objects.using(self.alias).filter(worker=worker).order_by("pk").values_list("pk", flat=True)[:FEW]
        rows = Job.objects.using(self.alias).filter(lease__isnull=False, lease__in=list(leases))
        return _ids(rows.order_by("lease"), FEW)


def _ids(rows: QuerySet[Any], most: int) -> list[UUID]:
    return list(rows.values_list("pk", flat=True)[:most])
