"""The screen of finished jobs: how they ended, how long they took, what they returned."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from ..models import FinishedJob
from .copying import COPY, CopyingMixin
from .filters import EnqueuedFilter, OutcomeFilter, PriorityFilter, QueueFilter, TaskFilter, TenantFilter
from .job_columns import WHAT, WHERE, JobColumnsMixin
from .revealing import json_of
from .search import FINISHED_WORDS
from .shown import pill, stacked
from .words import duration, when


class FinishedJobAdminMixin(CopyingMixin, JobColumnsMixin):
    """Finished jobs, newest first."""

    came_at = "finished_at"
    actions = ("copy", "export")
    operations = (COPY,)
    words = FINISHED_WORDS
    list_display = ("named", "ending", "tries", "finished", "ran_by", "lane", "preview")
    list_filter = (OutcomeFilter, QueueFilter, PriorityFilter, EnqueuedFilter, TaskFilter, TenantFilter)
    empty_text = _("No finished job is kept. WORKQUEUE['RETENTION'] says for how long they are.")
    fieldsets = (
        (None, {"fields": ("ending", "finished", "ran", "worker", "shown_result", "expires")}),
        WHAT,
        WHERE,
        (_("Counts"), {"fields": ("tries", "interruptions", "enqueued", "started")}),
    )

    started = when("started_at", _("started"))
    finished = when("finished_at", _("finished"))
    expires = when("expires_at", _("kept until"))
    shown_result = json_of("result", _("result"))

    @admin.display(description=_("outcome"))
    def ending(self, row: FinishedJob) -> str:
        """Show how it ended."""
        return pill(row.outcome, row.get_outcome_display())

    @admin.display(description=_("ran"))
    def ran_by(self, row: FinishedJob) -> str:
        """Show how long the last attempt ran, and with which worker."""
        return stacked(self.ran(row), row.worker)

    @admin.display(description=_("ran for"))
    def ran(self, row: FinishedJob) -> str:
        """Show how long the last attempt ran; a dash for a job that never did."""
        return duration(row.finished_at - row.started_at) if row.started_at else "-"
