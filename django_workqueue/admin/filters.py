"""Filters of the lists. Their choices are fixed, or rows of the small table of queues; no DISTINCT scan."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.enums import TextChoices
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..domain.states import DeathReason, Ending, JobState
from ..models import Queue
from .search import Reach

QUEUE_CHOICES = 100
"""Queues offered as choices; more of them are reached by ``queue:`` in the search box."""


class ColumnFilter(admin.SimpleListFilter):
    """Filters by the column that ``parameter_name`` names."""

    reach: Reach = Reach.ALL
    """What the filter in use makes the database look at."""

    def has_output(self) -> bool:
        """Hold also where there is nothing to choose: a filter of the address must never be passed over."""
        return super().has_output() or self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that have the chosen value."""
        return queryset.filter((self.parameter_name, self.value())) if self.value() else queryset


class QueueFilter(ColumnFilter):
    """Filters by queue."""

    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the names of the queues."""
        queues = Queue.objects.using(get_settings().database).order_by("pk")
        return [(name, name) for name in queues.values_list("pk", flat=True)[:QUEUE_CHOICES]]


class WordFilter(ColumnFilter):
    """Filters by a column that holds one of a few words."""

    words: ClassVar[type[TextChoices]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, Any]]:
        """Return the words."""
        return self.words.choices


class StateFilter(WordFilter):
    """Filters live jobs by state. Each state has a partial index of its own."""

    title = _("state")
    parameter_name = "state"
    words = JobState
    reach = Reach.PAGE

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self.value() == JobState.LEASED:
            # No more than the fleet holds, but old: not to be looked for among the newest jobs.
            self.reach = Reach.FEW

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the jobs in the chosen state, by what its index is known by."""
        rows = super().queryset(request, queryset)
        match self.value():
            case JobState.LEASED:
                return rows.filter(lease__isnull=False)
            case JobState.BLOCKED:
                return rows.filter(concurrency_key__isnull=False)
            case _:
                return rows


class ReasonFilter(WordFilter):
    """Filters dead letters by why they stopped."""

    title = _("reason")
    parameter_name = "reason"
    words = DeathReason


class GroupFilter(ColumnFilter):
    """Keeps to one group of dead letters; the page of groups leads to it."""

    title = _("group")
    parameter_name = "fingerprint"
    # The index of fingerprints has them in the order of the list.
    reach = Reach.PAGE

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the group that is shown, if one is: all of them would be too many."""
        chosen = request.GET.get(self.parameter_name)
        return [] if chosen is None else [(chosen, _("This group"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the letters of the group; an empty name is that of a group too."""
        return queryset if self.value() is None else queryset.filter(fingerprint=self.value())


class AcknowledgedFilter(ColumnFilter):
    """Filters dead letters by whether a person has seen them."""

    title = _("acknowledged")
    parameter_name = "acknowledged"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return yes and no."""
        return [("no", _("No")), ("yes", _("Yes"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return those that were, or those that were not."""
        if self.value() is None:
            return queryset
        if self.value() not in {"no", "yes"}:
            return queryset.none()
        return queryset.filter(acknowledged_at__isnull=self.value() == "no")


class OutcomeFilter(WordFilter):
    """Filters finished jobs by how they ended."""

    title = _("outcome")
    parameter_name = "outcome"
    words = Ending
