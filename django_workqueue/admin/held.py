"""The jobs that a worker or a lease holds at this moment, as its page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from ..models import Job
from .base import Mixin
from .overview import Links
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


class HoldingMixin(Mixin):
    """A page that lists jobs held now, for those who may view jobs."""

    database: str
    held_by: str
    """The lookup by which jobs are found from the key of the page's row."""

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the row, and the jobs."""
        held = self._held(request, context["original"])
        return super().render_change_form(request, context | {"held": held}, *args, **kwargs)

    def _held(self, request: HttpRequest, row: Any) -> list[HeldJob] | None:
        if not request.user.has_perm("django_workqueue.view_job"):
            return None
        links = Links(request, self.admin_site.name)
        jobs = Job.objects.using(self.database).filter(lease__isnull=False, **{self.held_by: row.pk})
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
