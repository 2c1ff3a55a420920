"""Taking jobs out that nobody wants any more, and what running jobs and those who watch them tell each other."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce

from ..domain.scope import Scope, Tenants
from ..domain.states import JobState
from ..models import FinishedJob, Job, Lease
from .settle import Settling


class CancelRequest(NamedTuple):
    """A running job that is to be cancelled, and the lease under which it runs."""

    job_id: UUID
    lease_id: int
    force: bool


class Cancelling(Settling):
    """Cancel, and the messages between running jobs and the outside: requests to them, progress from them."""

    def cancel(self, job_id: UUID, *, force: bool = False, tenant: Tenants = None) -> FinishedJob | Job | None:
        """
        Cancel a waiting job at once, and ask for the end of a running one.

        Returns the finished job, the running one, or None when there is no such live job, with ``tenant`` none of
        its. A member of a workflow whose turn has not come is taken for a waiting job. Asking twice keeps the first
        time; ``force`` stays once it was asked for. Waits for whoever claims or settles the job at this moment, so that
        the answer holds: a job that it found waiting never starts.
        """
        with self.transaction():
            jobs = Scope.of(tenant).apply(Job.objects.using(self.alias).filter(pk=job_id))
            # Workflows before jobs, as those who settle them.
            self.lock_workflows(jobs.values_list("workflow", flat=True))
            locked = jobs.select_for_update() if self.connection.features.has_select_for_update else jobs
            # A member that was about to start when it was looked up is a job after that.
            job = locked.first() or self.waiting_member(job_id, tenant) or locked.first()
            if job is None:
                return None
            if job.state != JobState.LEASED:
                return self._cancel(job, self.now())
            jobs.update(
                cancel_requested_at=Coalesce(F("cancel_requested_at"), self.clock()),
                cancel_force=True if force else F("cancel_force"),
            )
        return job

    def cancel_requests(self, lease_ids: Collection[int]) -> set[CancelRequest]:
        """Return what is to be cancelled of the jobs under these leases."""
        asked = Job.objects.using(self.alias).filter(lease__in=lease_ids, cancel_requested_at__isnull=False)
        rows = asked.values_list("pk", "lease_id", "cancel_force")
        return {CancelRequest(pk, lease_id, bool(force)) for pk, lease_id, force in rows}

    def note_progress(self, job_id: UUID, lease_id: int, progress: str) -> bool:
        """Store what a running job reports of itself, JSON text. False, with nothing written, without its lease."""
        alive = Lease.objects.using(self.alias).filter(pk=lease_id, expires_at__gt=self.clock())
        held = Job.objects.using(self.alias).filter(pk=job_id, lease=lease_id, lease__in=alive)
        return bool(held.update(progress=progress))
