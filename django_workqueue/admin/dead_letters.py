"""The screen of dead letters: why each stopped, and what a person decides about it."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from ..models import DeadLetter
from .dead_groups import DeadGroupsMixin
from .filters import GroupFilter, QueueFilter, ReasonFilter
from .job_columns import WHAT, WHERE
from .keyset import Keyset
from .operating import OperatingMixin
from .operations import DISCARD, REQUEUE
from .words import when


class DeadLetterAdminMixin(DeadGroupsMixin, OperatingMixin):
    """
    Dead letters, newest first.

    Requeue and discard have a permission each, ask before they act, and act on POST alone: on a selection as
    actions of the list, and on one dead letter from its page.
    """

    keyset = Keyset(("-died_at", "-id"))
    actions = ("requeue", "discard")
    operations = (REQUEUE, DISCARD)
    list_display = ("task", "reason", "error_line", "died", "queue", "tenant")
    list_filter = (GroupFilter, ReasonFilter, QueueFilter)
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

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """Whether the user may requeue."""
        return self._may(request, REQUEUE)

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Whether the user may discard."""
        return self._may(request, DISCARD)
