"""The screen of leases: who holds work, and until when."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..domain.scope import Scope
from ..lifecycle.keyset import Keyset
from ..models import Job, Lease
from ..store import Store
from .held import HoldingMixin
from .words import read_at, when


class LeaseAdminMixin(HoldingMixin):
    """Leases, newest first."""

    refreshes = True
    few = Store.few_of_lease
    keyset = Keyset(("-id",))
    list_display = ("id", "worker", "queue", "standing", "expires", "renewed", "acquired", "held_jobs")
    search_fields = ("=id", "worker", "queue")
    empty_text = gettext_lazy("No worker holds work at this moment.")
    fields = readonly_fields = (
        "id", "worker", "queue", "standing", "acquired", "renewed", "expires", "deadline", "held_jobs",
    )  # fmt: skip

    def within(self, scope: Scope, rows: QuerySet[Lease]) -> QuerySet[Lease]:
        """Return the leases that cover a job of the scope's tenants."""
        if not scope.is_limited:
            return rows
        return rows.filter(Exists(scope.apply(Job.objects.filter(lease=OuterRef("pk")))))

    acquired = when("acquired_at", gettext_lazy("acquired"))
    renewed = when("renewed_at", gettext_lazy("renewed"))
    expires = when("expires_at", gettext_lazy("expires"))
    deadline = when("deadline_at", gettext_lazy("longest possible"))

    @admin.display(description=gettext_lazy("state"))
    def standing(self, row: Lease) -> str:
        """Show whether the lease holds, by the database's clock."""
        lapsed = row.expires_at <= read_at(row)
        return _("Lapsed, about to be reaped") if lapsed else _("Held")

    @admin.display(description=gettext_lazy("jobs"))
    def held_jobs(self, row: Lease) -> str:
        """Show a link to the jobs that the lease covers."""
        url = reverse("admin:django_workqueue_job_changelist", current_app=self.admin_site.name)
        return format_html('<a href="{}?q=lease:{}">{}</a>', url, row.pk, _("show its jobs"))
