"""The screen of workers: which processes there are, whether they are well, and what they are asked to do."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..lifecycle.keyset import Keyset
from ..models import Worker
from ..models.worker import WorkerRequest, WorkerState
from ..store import Store
from .held import HoldingMixin
from .operating import OperatingMixin
from .words import age, coloured, read_at, when
from .worker_requests import FORGET, QUIET, RESUME, STOP, is_silent


class WorkerAdminMixin(OperatingMixin, HoldingMixin):
    """Workers, those started last first. Whoever may manage them asks; each heeds it at its next heartbeat."""

    actions = ("quiet", "resume", "stop", "forget")
    operations = (QUIET, RESUME, STOP, FORGET)
    refreshes = True
    few = Store.few_of_worker
    keyset = Keyset(("-started_at", "-id"))
    list_display = (
        "name", "standing", "busy", "seen", "queues", "host", "pid", "memory", "done", "failed", "started",
    )  # fmt: skip
    search_fields = ("id", "name", "host")
    empty_text = gettext_lazy("No worker has reported. Start one with: manage.py runworkers")
    fieldsets = (
        (None, {"fields": ("standing", "asked", "seen", "busy", "queues", "done", "failed")}),
        (gettext_lazy("Process"), {"fields": ("id", "name", "host", "pid", "started", "memory", "versions")}),
    )

    is_shared = True
    totals = frozenset({"busy", "done", "failed"})

    seen = when("seen_at", gettext_lazy("heartbeat"))
    started = when("started_at", gettext_lazy("started"))

    def get_readonly_fields(self, request: HttpRequest, obj: Worker | None = None) -> list[Any]:
        """Return every name of the layout."""
        return flatten_fieldsets(self.get_fieldsets(request, obj))

    # -- asking --------------------------------------------------------------------------------------------------

    def has_manage_permission(self, request: HttpRequest) -> bool:
        """Whether the user may ask workers for anything, and forget those that are gone."""
        return self._may(request, QUIET)

    @admin.action(permissions=["manage"], description=gettext_lazy("Quiet selected %(verbose_name_plural)s…"))
    def quiet(self, request: HttpRequest, queryset: QuerySet[Worker]) -> HttpResponse | None:
        """Ask, then let the selected workers claim nothing more."""
        return self._run_action(request, queryset, QUIET)

    @admin.action(permissions=["manage"], description=gettext_lazy("Resume selected %(verbose_name_plural)s…"))
    def resume(self, request: HttpRequest, queryset: QuerySet[Worker]) -> HttpResponse | None:
        """Ask, then let the selected workers claim again."""
        return self._run_action(request, queryset, RESUME)

    @admin.action(permissions=["manage"], description=gettext_lazy("Stop selected %(verbose_name_plural)s…"))
    def stop(self, request: HttpRequest, queryset: QuerySet[Worker]) -> HttpResponse | None:
        """Ask, then let the selected workers drain and exit."""
        return self._run_action(request, queryset, STOP)

    @admin.action(permissions=["manage"], description=gettext_lazy("Forget selected %(verbose_name_plural)s…"))
    def forget(self, request: HttpRequest, queryset: QuerySet[Worker]) -> HttpResponse | None:
        """Ask, then remove the selected workers that are silent."""
        return self._run_action(request, queryset, FORGET)

    # -- columns -------------------------------------------------------------------------------------------------

    @admin.display(description=gettext_lazy("state"))
    def standing(self, row: Worker) -> str:
        """Show what the worker says of itself, unless it has gone silent, and what it has not yet heard."""
        if is_silent(row):
            return coloured("bad", _("Silent: stopped, or cut off"))
        wanted = _WANTED[WorkerRequest(row.request)]
        told = row.get_state_display()
        if row.state not in {wanted, WorkerState.STOPPING}:
            told = _("%(state)s; asked to be: %(wanted)s") % {"state": told, "wanted": wanted.label}
        return coloured("good" if row.state == WorkerState.RUNNING else "idle", told)

    @admin.display(description=gettext_lazy("asked to"))
    def asked(self, row: Worker) -> str:
        """Show what a person wanted of it last, who and when."""
        if row.requested_at is None:
            return "-"
        told = {"request": row.get_request_display(), "name": row.requested_by or "?"}
        return format_html("{} {}", _("%(request)s, by %(name)s,") % told, age(row.requested_at, read_at(row)))

    @admin.display(description=gettext_lazy("busy slots"))
    def busy(self, row: Worker) -> str:
        """Show how many of its slots are running a job."""
        words = _("%(running)d of %(slots)d") % {"running": row.running, "slots": row.slots}
        return format_html('<meter max="{}" value="{}">{}</meter> {}', str(row.slots), str(row.running), words, words)

    @admin.display(description=gettext_lazy("memory"))
    def memory(self, row: Worker) -> str:
        """Show the memory in units that can be read; a dash when it is not known."""
        return filesizeformat(row.memory_bytes) if row.memory_bytes else "-"


_WANTED = {
    WorkerRequest.WORK: WorkerState.RUNNING,
    WorkerRequest.QUIET: WorkerState.QUIET,
    WorkerRequest.STOP: WorkerState.STOPPING,
}
