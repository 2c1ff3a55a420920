"""The screen of dead letters: why each stopped, and what a person decides about it."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from ..lifecycle.keyset import Keyset
from ..models import DeadLetter
from .copying import COPY, CopyingMixin
from .dead_groups import DeadGroupsMixin
from .decisions import ACKNOWLEDGE, AMEND, DISCARD, REQUEUE
from .filters import AcknowledgedFilter, GroupFilter, QueueFilter, ReasonFilter
from .job_columns import WHAT, WHERE, JobColumnsMixin
from .words import when


class DeadLetterAdminMixin(CopyingMixin, DeadGroupsMixin, JobColumnsMixin):
    """
    Dead letters, newest first.

    Each operation has a permission of its own, asks before it acts, and acts on POST alone: on a selection as an action
    of the list, on one dead letter from its page, on a whole group, and on all that match the filters.
    """

    keyset = Keyset(("-died_at", "-id"))
    came_at = "died_at"
    actions = ("requeue", "acknowledge", "discard", "copy")
    operations = (REQUEUE, AMEND, ACKNOWLEDGE, DISCARD, COPY)
    list_display = ("task", "reason", "error_line", "died", "queue", "tenant")
    list_filter = (GroupFilter, ReasonFilter, AcknowledgedFilter, QueueFilter)
    empty_text = _("No job has stopped for good. One that does waits here until a person decides.")
    fieldsets = (
        (None, {"fields": ("reason", "died", "enqueued", "tries", "shown_last_error")}),
        WHAT,
        WHERE,
        (_("Seen by"), {"fields": (("acknowledged", "acknowledged_by"), "note")}),
    )

    died = when("died_at", _("died"))
    acknowledged = when("acknowledged_at", _("acknowledged"))

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
