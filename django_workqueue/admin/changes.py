"""What people did to a job, wherever it was at that time: cancelled, moved, put back, acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.admin.models import LogEntry

from ..models.base import JobColumns
from .words import age, read_at

LOOKED_THROUGH = 50_000
"""Newest entries of the log: it has no index over what it tells of."""
SHOWN = 50
PLACES = ("job", "finishedjob", "deadletter")


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log, as seen from ``now``."""

    entry: LogEntry
    now: datetime

    @property
    def when(self) -> str:
        """When it was done."""
        return age(self.entry.action_time, self.now)

    @property
    def by(self) -> str:
        """Who did it."""
        return self.entry.user.get_username()

    @property
    def what(self) -> str:
        """What was done, and why."""
        return self.entry.get_change_message()


def changes_of(job: JobColumns) -> list[Change]:
    """Read what the newest entries of the log tell of ``job``, first to last."""
    newest = LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    tables = {"content_type__app_label": job._meta.app_label, "content_type__model__in": PLACES}
    entries = LogEntry.objects.filter(pk__gt=newest - LOOKED_THROUGH, object_id=str(job.pk), **tables)
    found = entries.select_related("user").order_by("-pk")[:SHOWN]
    return [Change(entry, read_at(job)) for entry in reversed(found)]
