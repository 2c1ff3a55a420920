"""Claim: take ready jobs under one new lease, within the queue's limits, and renew what is held."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import Error

from ..conf import QueuePolicy, get_settings
from ..domain.limits import Hold, Room, Window, room, window_at
from ..domain.outcomes import ClaimedJob
from ..domain.pauses import NO_PAUSES, Pauses
from ..domain.rotation import LaneTurn, Rotation
from ..exceptions import LeaseLostError
from ..models import Queue
from ..store import Store
from ..store.claim import ClaimOrder
from .cancel import tell_cancelled

FEWEST_LANES, MOST_LANES = 10, 100
"""Lanes looked at by one claim: each costs an index descent, but one that proves empty must not cost a round trip."""
HOLD = Hold(timedelta(seconds=0.25), firm=False)
"""How long a queue at its limit is left alone, unless something happens: slots that other workers free are not told."""


def claim(
    store: Store, rotation: Rotation, *, queue: str, worker: str, limit: int, pauses: Pauses = NO_PAUSES
) -> list[ClaimedJob]:
    """
    Claim up to ``limit`` jobs of ``queue`` for ``worker``, from the lanes whose turn it is.

    Every lane may give an equal share; what one lane leaves unused is claimed at its next turn. Empty when no lane that
    is remembered has work, or, as ``rotation.hold`` then says, when the queue's limits leave nothing. Lanes of paused
    tenants are left out, and jobs of paused tasks are parked.
    """
    rotation.hold = None
    policy = get_settings().queue(queue)
    order = _Order(store, rotation, queue, worker, policy, pauses)
    return order.claim_within_limits(limit) if policy.limits else order.claim(limit, without=pauses.tenants)


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


def _without_paused(store: Store, jobs: list[ClaimedJob], paused: Collection[str]) -> list[ClaimedJob]:
    """
    Park what must not be begun, and return the rest.

    A claim looks at no task: the ready index is not by task, and would be walked through the whole backlog of a paused
    one. So each of its jobs is claimed once, and is out of the way then.
    """
    parked = {job.id for job in jobs if job.task in paused}
    if not parked:
        return jobs
    tell_cancelled(store, store.park(jobs[0].lease_id, parked, last=len(parked) == len(jobs)))
    return [job for job in jobs if job.id not in parked]


@dataclass(frozen=True, slots=True)
class _Order:
    """One claim of one queue."""

    store: Store
    rotation: Rotation
    queue: str
    worker: str
    policy: QueuePolicy
    pauses: Pauses

    def claim(self, limit: int, *, without: Collection[str], room: Room | None = None) -> list[ClaimedJob]:
        """Claim from the lanes whose turn it is, ``without`` those of some tenants."""
        lanes = self.rotation.turn(min(max(limit, FEWEST_LANES), MOST_LANES), without)
        if not lanes:
            return []
        quantum = max(1, limit // len(lanes))
        order = ClaimOrder(
            worker=self.worker,
            queue=self.queue,
            lanes=lanes,
            limit=limit,
            quantum=quantum if room is None else min(quantum, _least(room, lanes)),
            lease=self.policy.lease,
            max_lease=self.policy.max_lease,
        )
        jobs, cut, at = self.store.claim(order)
        self.rotation.settle(lanes, jobs, full=cut or len(jobs) >= limit, at=at)
        return _without_paused(self.store, jobs, self.pauses.tasks) if self.pauses.tasks else jobs

    def claim_within_limits(self, limit: int) -> list[ClaimedJob]:
        """Claim what the queue's limits leave, alone among all workers; where that is nothing, hold the queue back."""
        try:
            with self.store.exclusive(self.queue) as row:
                return self._claim_alone(row, limit)
        except Error as error:
            if not self.store.is_locked(error):
                raise
            self.rotation.hold = HOLD
            return []

    def _claim_alone(self, row: Queue, limit: int) -> list[ClaimedJob]:
        limits, rate, now = self.policy.limits, self.policy.limits.rate, self.store.now()
        window = window_at(now, rate, row.window_started_at, row.window_taken) if rate else None
        if rate and window and not window.left(rate):
            self.rotation.hold = Hold(window.ends_in(rate, now), firm=True)
            return []
        leased = self.store.leased_tenants(self.queue) if limits.count_leased else {}
        left = room(limits, limit, leased, window)
        if left.total <= 0:
            self.rotation.hold = HOLD
            return []
        without = self.pauses.tenants | left.full
        jobs = self.claim(left.total, without=without, room=left)
        if jobs and window:
            self.store.write_window(self.queue, Window(window.started_at, window.taken + len(jobs)))
        if left.full and not self.rotation.turn(1, without):
            self.rotation.hold = HOLD
        return jobs


def _least(room: Room, lanes: Collection[LaneTurn]) -> int:
    """Return what each of these lanes has room for."""
    return min(room.tenants.get(lane.tenant, room.each) for lane in lanes)
