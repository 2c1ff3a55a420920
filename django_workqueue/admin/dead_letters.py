"""The screen of dead letters: why each stopped, and what a person decides about it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from ..lifecycle.keyset import Keyset
from ..models import DeadLetter, Failure
from .copying import COPY, CopyingMixin
from .dead_groups import DeadGroupsMixin
from .decisions import ACKNOWLEDGE, AMEND, DISCARD, REQUEUE
from .filters import AcknowledgedFilter, DiedFilter, GroupFilter, QueueFilter, ReasonFilter, TaskFilter, TenantFilter
from .job_columns import WHAT, WHERE, JobColumnsMixin
from .shown import pill, stacked
from .words import age, read_at, when


class DeadLetterAdminMixin(CopyingMixin, DeadGroupsMixin, JobColumnsMixin):
    """
    Dead letters, newest first.

    Each operation has a permission of its own, asks before it acts, and acts on POST alone: on a selection as an action
    of the list, on one dead letter from its page, on a whole group, and on all that match the filters.
    """

    keyset = Keyset(("-died_at", "-id"))
    came_at = "died_at"
    actions = ("requeue", "acknowledge", "discard", "copy", "export")
    operations = (REQUEUE, AMEND, ACKNOWLEDGE, DISCARD, COPY)
    list_display = ("named", "cause", "tries", "times", "last_worker", "lane", "preview")
    list_filter = (GroupFilter, ReasonFilter, AcknowledgedFilter, DiedFilter, QueueFilter, TaskFilter, TenantFilter)
    empty_text = _("No job has stopped for good. One that does waits here until a person decides.")
    fieldsets = (
        (None, {"fields": ("shown_reason", "died", "enqueued", "tries", "shown_last_error")}),
        WHAT,
        WHERE,
        (_("Seen by"), {"fields": (("acknowledged", "acknowledged_by"), "note")}),
    )

    died = when("died_at", _("died"))
    acknowledged = when("acknowledged_at", _("acknowledged"))

    def listed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Add when each first failed, and the worker of its last attempt: two index descents for a row."""
        failures = Failure.objects.filter(job_id=OuterRef("pk"))
        first = failures.order_by("id").values("failed_at")[:1]
        last = failures.order_by("-id").values("worker")[:1]
        listed: QuerySet[Any] = rows.annotate(first_failed_at=Subquery(first), last_worker=Subquery(last))
        return listed

    @admin.display(description=_("reason"))
    def shown_reason(self, row: DeadLetter) -> str:
        """Show why it stopped."""
        return pill("dead", row.get_reason_display())

    @admin.display(description=_("why"))
    def cause(self, row: DeadLetter) -> str:
        """Show why it stopped, and the beginning of its last error."""
        return stacked(self.shown_reason(row), self.error_line(row))

    @admin.display(description=_("died"))
    def times(self, row: Any) -> str:
        """Show when it died, and when the first of its attempts failed that are on record."""
        now = read_at(row)
        first = row.first_failed_at
        return stacked(age(row.died_at, now), first and format_html(str(_("first failed {}")), age(first, now)))

    @admin.display(description=_("last worker"))
    def last_worker(self, row: Any) -> str:
        """Show which worker the last failed attempt was with."""
        return row.last_worker or "-"

    @admin.action(permissions=["requeue"], description=_("Requeue selected %(verbose_name_plural)s…"))
    def requeue(self, request: HttpRequest, queryset: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Ask, then put the selected dead letters back."""
        return self._run_action(request, queryset, REQUEUE)

    @admin.action(permissions=["discard"], description=_("Discard selected %(verbose_name_plural)s…"))
    def discard(self, request: HttpRequest, queryset: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Ask, then delete the selected dead letters."""
        return self._run_action(request, queryset, DISCARD)

    @admin.action(permissions=["acknowledge"], description=_("Acknowledge selected %(verbose_name_plural)s…"))
    def acknowledge(self, request: HttpRequest, queryset: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Ask for a note, then keep it with the selected dead letters."""
        return self._run_action(request, queryset, ACKNOWLEDGE)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        """Whether the user may acknowledge."""
        return self._may(request, ACKNOWLEDGE)

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """Whether the user may requeue."""
        return self._may(request, REQUEUE)

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Whether the user may discard."""
        return self._may(request, DISCARD)
