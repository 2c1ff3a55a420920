"""Claim: take ready jobs under one new lease, and renew what is held."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from ..conf import get_settings
from ..domain.outcomes import ClaimedJob
from ..domain.rotation import Rotation
from ..exceptions import LeaseLostError
from ..store import Store
from ..store.claim import ClaimOrder

FEWEST_LANES, MOST_LANES = 10, 100
"""Lanes looked at by one claim: each costs an index descent, but one that proves empty must not cost a round trip."""


def claim(store: Store, rotation: Rotation, *, queue: str, worker: str, limit: int) -> list[ClaimedJob]:
    """
    Claim up to ``limit`` jobs of ``queue`` for ``worker``, from the lanes whose turn it is.

    Every lane may give an equal share; what one lane leaves unused is claimed at its next turn. Empty when no lane that
    is remembered has work.
    """
    lanes = rotation.turn(min(max(limit, FEWEST_LANES), MOST_LANES))
    if not lanes:
        return []
    policy = get_settings().queue(queue)
    order = ClaimOrder(
        worker=worker,
        queue=queue,
        lanes=lanes,
        limit=limit,
        quantum=max(1, limit // len(lanes)),
        lease=policy.lease,
        max_lease=policy.max_lease,
    )
    jobs, cut, at = store.claim(order)
    rotation.settle(lanes, jobs, full=cut or len(jobs) >= limit, at=at)
    return jobs


def renew(store: Store, leases: Mapping[int, str]) -> set[int]:
    """Renew ``leases``, a map of lease ids to queues, and return the ids that are lost."""
    lengths: dict[int, timedelta] = {pk: get_settings().queue(queue).lease for pk, queue in leases.items()}
    return set(leases) - store.renew(lengths) if leases else set()


def keep(store: Store, job: ClaimedJob) -> bool:
    """
    Renew the lease of one running job, and return whether the job is to be cancelled.

    Raises LeaseLostError, saying why, when the lease no longer holds.
    """
    if renew(store, {job.lease_id: job.queue}):
        reason, holder = store.loss(job.lease_id, job.id)
        raise LeaseLostError(job.lease_id, reason, job_id=job.id, holder=holder)
    return any(request.job_id == job.id for request in store.cancel_requests([job.lease_id]))
