"""The columns that the lists of live, finished and dead jobs share."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from ..models.base import JobColumns
from .base import Mixin
from .shown import preview, short_id, short_task, stacked


class ListColumnsMixin(Mixin):
    """Columns that say two things above each other: beside each other they would not fit on a screen."""

    @admin.display(description=_("job"))
    def named(self, row: JobColumns) -> str:
        """Show the last part of the task's path and the ends of the id; a script adds a button that copies it."""
        return stacked(short_task(row.task), short_id(row.pk))

    @admin.display(description=_("queue"))
    def lane(self, row: JobColumns) -> str:
        """Show the queue, the tenant where there is one, and the priority where it is not the usual one."""
        priority = _("priority %(number)d") % {"number": row.priority} if row.priority else ""
        return stacked(row.queue, row.tenant, priority)

    @admin.display(description=_("arguments"))
    def preview(self, row: Any) -> str:
        """Show the beginning of the arguments."""
        return preview(row)
