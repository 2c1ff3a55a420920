"""The screen of live jobs: what waits, what is due when, what runs."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from ..domain.progress import Progress
from ..domain.states import JobState
from ..models import Job
from .filters import EnqueuedFilter, LateFilter, PriorityFilter, QueueFilter, StateFilter, TaskFilter, TenantFilter
from .job_columns import WHAT, WHERE, JobColumnsMixin
from .matching import MatchingMixin
from .operations import CANCEL, FORCE_CANCEL
from .rescheduling import MOVE, RUN_NOW
from .revealing import veil_of
from .search import LIVE_WORDS
from .shown import pill, stacked
from .words import age, duration, read_at, when


class JobAdminMixin(MatchingMixin, JobColumnsMixin):
    """Live jobs, newest first. What may be done to them asks before it acts, and acts on POST alone."""

    refreshes = True
    actions = ("run_now", "move", "cancel", "force_cancel", "export")
    operations = (RUN_NOW, MOVE, CANCEL, FORCE_CANCEL)
    list_display = ("named", "standing", "tries", "timing", "holder", "lane", "preview")
    list_filter = (StateFilter, LateFilter, QueueFilter, PriorityFilter, EnqueuedFilter, TaskFilter, TenantFilter)
    words = LIVE_WORDS
    empty_text = _(
        "No job is waiting or running. Calling enqueue() on a task puts one here; those that are over are "
        "among the finished jobs and the dead letters."
    )
    fieldsets = (
        (None, {"fields": ("shown_state", "timing", "held_by", "shown_progress", "cancel_requested", "enqueued")}),
        WHAT,
        WHERE,
        (_("Counts"), {"fields": ("tries", "interruptions", "lapses", "shown_last_error")}),
    )

    cancel_requested = when("cancel_requested_at", _("cancel requested"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Return the jobs with their leases. No constraint keeps a lease there until it is looked for."""
        return super().get_queryset(request).select_related("lease")

    @admin.action(permissions=["reschedule"], description=_("Run selected %(verbose_name_plural)s now…"))
    def run_now(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Ask, then make the selected jobs due."""
        return self._run_action(request, queryset, RUN_NOW)

    @admin.action(
        permissions=["reschedule"], description=_("Change queue or priority of selected %(verbose_name_plural)s…")
    )
    def move(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Ask where to, then move the selected jobs."""
        return self._run_action(request, queryset, MOVE)

    @admin.action(permissions=["cancel"], description=_("Cancel selected %(verbose_name_plural)s…"))
    def cancel(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Ask, then cancel the selected jobs."""
        return self._run_action(request, queryset, CANCEL)

    @admin.action(permissions=["cancel"], description=_("Cancel selected %(verbose_name_plural)s by force…"))
    def force_cancel(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Ask, then cancel the selected jobs, whether they listen or not."""
        return self._run_action(request, queryset, FORCE_CANCEL)

    def has_reschedule_permission(self, request: HttpRequest) -> bool:
        """Whether the user may change when and where jobs run."""
        return self._may(request, RUN_NOW)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Whether the user may cancel."""
        return self._may(request, CANCEL)

    @admin.display(description=_("state"))
    def shown_state(self, row: Job) -> str:
        """Show the state."""
        if row.state == JobState.SCHEDULED and row.attempts:
            return pill("retry", _("Waiting for retry"))
        return pill(row.state, row.get_state_display())

    @admin.display(description=_("state"))
    def standing(self, row: Job) -> str:
        """Show the state, and how far a running job is."""
        return stacked(self.shown_state(row), "" if row.progress is None else self.shown_progress(row))

    @admin.display(description=_("worker"))
    def holder(self, row: Job) -> str:
        """Show which worker holds the job, and for how long; a dash for one that waits."""
        if row.lease is None:
            return "-"
        return stacked(row.lease.worker, _("for %(time)s") % {"time": duration(read_at(row) - row.lease.acquired_at)})

    @admin.display(description=_("progress"))
    def shown_progress(self, row: Job) -> str:
        """Show what the running task last said of itself: a bar where the total is known, and its words."""
        progress = None if row.progress is None else Progress.decode(row.progress)
        if progress is None:
            return "-"
        told = veil_of(row).text(str(progress))
        if progress.percent is None:
            return told
        return format_html('<progress max="100" value="{}"></progress> {}', progress.percent, told)

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
