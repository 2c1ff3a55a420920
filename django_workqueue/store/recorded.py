"""What the rows say of an attempt, for a worker that was refused or did not hear what became of its report."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Min

from ..domain.outcomes import ClaimedJob
from ..domain.states import RECLAIMED, FailureKind
from ..exceptions import LossReason
from ..models import Failure, FinishedJob, Job, Lease
from .base import BaseStore


class Recorded(BaseStore):
    """Reads about attempts. Nothing is changed."""

    def loss(self, lease_id: int, job_id: UUID) -> tuple[LossReason, str]:
        """Return why ``lease_id`` no longer holds ``job_id``, and the worker that holds it now, if any."""
        lease = Lease.objects.using(self.alias).filter(pk=lease_id).first()
        if lease is not None:
            return ("capped" if lease.expires_at >= lease.deadline_at else "expired"), ""
        holder = Lease.objects.using(self.alias).filter(jobs__pk=job_id).values_list("worker", flat=True).first()
        if holder is not None:
            return "taken", holder
        capped = Failure.objects.using(self.alias).filter(job_id=job_id, lease_id=lease_id, kind=FailureKind.CAPPED)
        return ("capped" if capped.exists() else "expired"), ""

    def recorded(self, jobs: Collection[ClaimedJob], worker: str) -> set[UUID]:
        """
        Return those of ``jobs`` whose settlement by ``worker`` is in the database.

        For a worker whose connection broke after a commit and before its answer. A completed job of which no row is
        kept cannot be told from one that was lost, and is not among them.
        """
        ids = [job.id for job in jobs]
        finished = FinishedJob.objects.using(self.alias).filter(pk__in=ids, worker=worker).values_list("pk", flat=True)
        # A job may have failed before, under a lease that another of these still holds: only the pair tells.
        claims = {(job.id, job.lease_id) for job in jobs}
        # The reaper's record of a lease of this worker names it too, and is none of its own.
        failed = Failure.objects.using(self.alias).filter(job_id__in=ids, worker=worker).exclude(kind__in=RECLAIMED)
        pairs = claims.intersection(failed.values_list("job_id", "lease_id"))
        return {*finished, *(job_id for job_id, _ in pairs)}

    def is_completed(self, job: ClaimedJob, worker: str) -> bool:
        """
        Whether ``worker`` completed ``job`` under its lease, for one that did not hear of its own commit.

        No row may be kept of that. While the lease holds, nobody else can have taken the job from under it.
        """
        if FinishedJob.objects.using(self.alias).filter(pk=job.id, worker=worker).exists():
            return True
        if Job.objects.using(self.alias).filter(pk=job.id, lease=job.lease_id).exists():
            return False
        return Lease.objects.using(self.alias).filter(pk=job.lease_id, expires_at__gt=self.clock()).exists()

    def put_off_since(self, job_id: UUID, attempt: int) -> tuple[int, datetime | None]:
        """Return how often, and since when, this attempt was put off for want of its task."""
        # An earlier job of the same id may have left failures, and has used up its own patience.
        enqueued_at = Job.objects.using(self.alias).filter(pk=job_id).values("enqueued_at")
        times = Failure.objects.using(self.alias).filter(job_id=job_id, attempt=attempt, kind=FailureKind.UNKNOWN_TASK)
        found = times.filter(failed_at__gte=enqueued_at).aggregate(count=Count("pk"), since=Min("failed_at"))
        return found["count"], found["since"]
