"""Depth: refuse a tenant's new jobs while as many of its jobs wait as the queue permits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from ..conf import get_settings
from ..domain.states import JobState
from ..exceptions import QueueFullError
from ..models import Job
from ..store import Store
from ..store.enqueue import Stored

# Not scheduled ones: no index has them by lane, and one more would be written to by each delay and each retry.
_COUNTED = {JobState.READY, JobState.BLOCKED}


def insert_within_depth(store: Store, jobs: Sequence[Job], given: frozenset[UUID]) -> list[Stored]:
    """
    Store ``jobs``, all or none, unless that were more than the tenants may have waiting. Raises QueueFullError.

    Two callers who count at the same moment may both be let in: a lock for each enqueue would make them queue up.
    """
    full = _first_full(store, jobs)
    if full is None:
        return store.insert(jobs, given_ids=given)
    if not given and all(job.dedupe_key is None for job in jobs):
        raise full
    # Some may be answered with jobs that are there already; which, only the insert can tell.
    with store.transaction():
        stored = store.insert(jobs, given_ids=given)
        added = [job for job, duplicate in stored if not duplicate]
        if still_full := _first_full(store, added, stored=True):
            raise still_full
    return stored


def refuse_excess(store: Store, jobs: Sequence[Job]) -> None:
    """Raise QueueFullError when these new jobs, which are all to be stored, are more than the tenants may have."""
    if full := _first_full(store, jobs):
        raise full


def _first_full(store: Store, jobs: Sequence[Job], *, stored: bool = False) -> QueueFullError | None:
    """Return the refusal of the first lane that would have, or has by now, more waiting jobs than it may."""
    settings = get_settings()
    if not settings.bounds_depth:
        return None
    lanes = Counter((job.queue, job.tenant) for job in jobs if job.state in _COUNTED)
    for (queue, tenant), count in lanes.items():
        limit = settings.queue(queue).tenant_depth
        if limit is None:
            continue
        depth = store.depth(queue, tenant, limit + 1) - (count if stored else 0)
        if depth + count > limit:
            return QueueFullError(queue, tenant, depth=max(depth, 0), limit=limit)
    return None
