"""The jobs that a worker or a lease holds at this moment, as its page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from ..models import Job
from .base import ReadOnlyMixin
from .overview import Links
from .scope import scope_of
from .words import age

SHOWN = 100
"""Jobs on one page."""


@dataclass(frozen=True, slots=True)
class HeldJob:
    """One job, where to look closer, since when it is claimed and until when the lease holds."""

    job: Job
    address: str
    claimed: str
    expires: str


class HoldingMixin(ReadOnlyMixin):
    """A page that lists jobs held now, for those who may view jobs."""

    held_by: str
    """The lookup by which jobs are found from the key of the page's row."""

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Add the jobs."""
        return super().page_context(request, obj) | {"held": self._held(request, obj)}

    def _held(self, request: HttpRequest, row: Any) -> list[HeldJob] | None:
        if not request.user.has_perm("django_workqueue.view_job"):
            return None
        links = Links(request, self.admin_site.name)
        jobs = Job.objects.using(self.database).filter(lease__isnull=False, **{self.held_by: row.pk})
        jobs = scope_of(request).apply(jobs)
        return [
            HeldJob(
                job,
                links.to("job", job.pk),
                age(job.lease.acquired_at, row.read_at),
                age(job.lease.expires_at, row.read_at),
            )
            for job in jobs.select_related("lease").order_by("lease_id", "id")[:SHOWN]
            if job.lease is not None
        ]
