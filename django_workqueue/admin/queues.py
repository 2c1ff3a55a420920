"""The screen of queues: which are paused, and what they have done so far."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..models import Queue
from .base import ReadOnlyMixin
from .keyset import Keyset
from .words import when


class QueueAdminMixin(ReadOnlyMixin):
    """Queues by name."""

    keyset = Keyset(("name",))
    list_display = (
        "name",
        "standing",
        "paused",
        "live_jobs",
        "done",
        "failed",
        "dead",
        "reaped",
        "duplicates",
    )
    search_fields = ("name",)
    empty_text = gettext_lazy("No queue has been used. The first job enqueued into one puts it here.")
    fields = readonly_fields = (
        "name", "standing", "paused", "live_jobs", "done", "failed", "dead", "reaped", "duplicates",
    )  # fmt: skip

    paused = when("paused_at", gettext_lazy("paused"))

    @admin.display(description=gettext_lazy("state"))
    def standing(self, row: Queue) -> str:
        """Show whether workers may claim from the queue, and who says that they may not."""
        return _("Paused by %(name)s") % {"name": row.paused_by or "?"} if row.paused_at else _("Open")

    @admin.display(description=gettext_lazy("live jobs"))
    def live_jobs(self, row: Queue) -> str:
        """Show a link to the jobs that wait or run in the queue."""
        url = reverse("admin:django_workqueue_job_changelist", current_app=self.admin_site.name)
        return format_html('<a href="{}?{}">{}</a>', url, urlencode({"queue": row.pk}), _("show its jobs"))
