"""The screen of finished jobs: how they ended, how long they took, what they returned."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from ..models import FinishedJob
from .copying import COPY, CopyingMixin
from .filters import OutcomeFilter, QueueFilter
from .job_columns import WHAT, WHERE, JobColumnsMixin
from .revealing import json_of
from .words import duration, when


class FinishedJobAdminMixin(CopyingMixin, JobColumnsMixin):
    """Finished jobs, newest first."""

    came_at = "finished_at"
    actions = ("copy",)
    operations = (COPY,)
    list_display = ("task", "outcome", "finished", "ran", "queue", "tenant", "tries")
    list_filter = (OutcomeFilter, QueueFilter)
    empty_text = _("No finished job is kept. WORKQUEUE['RETENTION'] says for how long they are.")
    fieldsets = (
        (None, {"fields": ("outcome", "finished", "ran", "worker", "shown_result", "expires")}),
        WHAT,
        WHERE,
        (_("Attempts"), {"fields": ("tries", "interruptions", "enqueued", "started")}),
    )

    started = when("started_at", _("started"))
    finished = when("finished_at", _("finished"))
    expires = when("expires_at", _("kept until"))
    shown_result = json_of("result", _("result"))

    @admin.display(description=_("ran for"))
    def ran(self, row: FinishedJob) -> str:
        """Show how long the last attempt ran; a dash for a job that never did."""
        return duration(row.finished_at - row.started_at) if row.started_at else "-"
