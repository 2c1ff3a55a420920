"""The screen of live jobs: what waits, what is due when, what runs."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from ..domain.states import JobState
from ..models import Job
from .filters import QueueFilter, StateFilter
from .job_columns import WHAT, WHERE, JobColumnsMixin
from .search import LIVE_WORDS
from .words import age, read_at


class JobAdminMixin(JobColumnsMixin):
    """Live jobs, newest first."""

    list_display = ("task", "state", "timing", "queue", "tenant", "tries", "enqueued")
    list_filter = (StateFilter, QueueFilter)
    words = LIVE_WORDS
    empty_text = _(
        "No job is waiting or running. Calling enqueue() on a task puts one here; those that are over are "
        "among the finished jobs and the dead letters."
    )
    fieldsets = (
        (None, {"fields": ("state", "timing", "held_by", "enqueued")}),
        WHAT,
        WHERE,
        (_("Attempts"), {"fields": ("tries", "interruptions", "lapses", "shown_last_error")}),
    )

    @admin.display(description=_("ready"))
    def timing(self, row: Job) -> str:
        """Show when a scheduled job is due, or since when another has been ready."""
        return age(row.ready_at, read_at(row))

    @admin.display(description=_("held by"))
    def held_by(self, row: Job) -> str:
        """Show the lease of a job that runs, as a link to its page."""
        if row.state != JobState.LEASED:
            return "-"
        url = reverse("admin:django_workqueue_lease_change", args=(row.lease_id,), current_app=self.admin_site.name)
        return format_html('<a href="{}">{}</a>', url, _("lease %(id)s") % {"id": row.lease_id})
