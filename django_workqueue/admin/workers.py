"""The screen of workers: which processes there are, and whether they are well."""

from __future__ import annotations

from django.contrib import admin
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..lifecycle import operate
from ..lifecycle.keyset import Keyset
from ..models import Worker
from .base import ReadOnlyMixin
from .held import HoldingMixin
from .words import read_at, when


class WorkerAdminMixin(HoldingMixin, ReadOnlyMixin):
    """Workers, those started last first."""

    held_by = "lease__worker"
    keyset = Keyset(("-started_at", "-id"))
    list_display = ("name", "host", "pid", "standing", "busy", "queues", "seen", "started", "done", "failed")
    search_fields = ("id", "name", "host")
    empty_text = gettext_lazy("No worker has reported. Start one with: manage.py runworkers")
    fields = readonly_fields = (
        "id", "name", "host", "pid", "standing", "seen", "started", "queues", "busy", "memory", "versions",
        "done", "failed",
    )  # fmt: skip

    seen = when("seen_at", gettext_lazy("seen"))
    started = when("started_at", gettext_lazy("started"))

    @admin.display(description=gettext_lazy("state"))
    def standing(self, row: Worker) -> str:
        """Show what the worker says of itself, unless it has gone silent."""
        silent = read_at(row) - row.seen_at > operate.silence()
        return _("Silent: stopped, or cut off") if silent else row.get_state_display()

    @admin.display(description=gettext_lazy("busy slots"))
    def busy(self, row: Worker) -> str:
        """Show how many of its slots are running a job."""
        return _("%(running)d of %(slots)d") % {"running": row.running, "slots": row.slots}

    @admin.display(description=gettext_lazy("memory"))
    def memory(self, row: Worker) -> str:
        """Show the memory in units that can be read; a dash when it is not known."""
        return filesizeformat(row.memory_bytes) if row.memory_bytes else "-"
