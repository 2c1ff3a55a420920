"""The jobs that a worker or a lease holds at this moment, as its page shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpRequest

from ..models import Job
from ..store import Store, store_for
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

    few: ClassVar[Callable[[Store, Any], list[UUID]]]
    """Finds the jobs from the key of the page's row: in the order of leases, not of all jobs."""

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Add the jobs."""
        return super().page_context(request, obj) | {"held": self._held(request, obj)}

    def _held(self, request: HttpRequest, row: Any) -> list[HeldJob] | None:
        if not request.user.has_perm("django_workqueue.view_job"):
            return None
        links = Links(request, self.admin_site.name)
        found = type(self).few(store_for(self.database), row.pk)
        jobs = Job.objects.using(self.database).filter(lease__isnull=False, pk__in=found)
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
