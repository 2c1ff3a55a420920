"""Filters of the lists. Their choices are fixed, or rows of the small table of queues; no DISTINCT scan."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.enums import TextChoices
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..domain.states import DeathReason, Ending, JobState
from ..models import Queue
from ..store import store_for
from .scope import scope_of
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
        """Return the names of the queues; who may see some tenants only needs the permission to see queues too."""
        if scope_of(request).is_limited and not request.user.has_perm("django_workqueue.view_queue"):
            return []
        queues = Queue.objects.using(get_settings().database).order_by("pk")
        return [(name, name) for name in queues.values_list("pk", flat=True)[:QUEUE_CHOICES]]


class WordFilter(ColumnFilter):
    """Filters by a column that holds one of a few words."""

    words: ClassVar[type[TextChoices]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, Any]]:
        """Return the words."""
        return self.words.choices


WAITS_FOR_RETRY = "retry"


class StateFilter(WordFilter):
    """
    Filters live jobs by state. Each state has a partial index of its own, in the order in which workers need it.

    Where those in the state are few, in the chosen queue at least, they are all found by it; where they are many, the
    newest jobs are looked through. A job that waits for its next try is scheduled; to a person it is something else
    than one whose time has not come.
    """

    title = _("state")
    parameter_name = "state"
    words = JobState

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, Any]]:
        """Return the states, and the wait for the next try."""
        return [*super().lookups(request, model_admin), (WAITS_FOR_RETRY, _("Waiting for retry"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the jobs in the chosen state, those alone that its index has where they are few."""
        if self.value() == WAITS_FOR_RETRY:
            return self._in(JobState.SCHEDULED, request, queryset.filter(attempts__gt=0))
        state = self.value()
        return queryset.none() if state and state not in JobState.values else self._in(state, request, queryset)

    def _in(self, state: str | None, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        if not state:
            return rows
        few = store_for(rows.db).few_in_state(state, request.GET.get(QueueFilter.parameter_name) or None)
        self.reach = Reach.ALL if few is None else Reach.FEW
        return rows.filter(state=state) if few is None else rows.filter(state=state, pk__in=few)


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


class PriorityFilter(ColumnFilter):
    """Filters by whether a job goes before or behind the others of its tenant."""

    title = _("priority")
    parameter_name = "priority"
    _ranges: ClassVar[dict[str, dict[str, int]]] = {
        "raised": {"priority__gt": 0},
        "usual": {"priority": 0},
        "lowered": {"priority__lt": 0},
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the three ranges: two hundred numbers are no choice."""
        return [("raised", _("Raised (above 0)")), ("usual", _("0")), ("lowered", _("Lowered (below 0)"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the chosen range; none for a word that is no range."""
        if self.value() is None:
            return queryset
        chosen = self._ranges.get(self.value() or "")
        return queryset.none() if chosen is None else queryset.filter(**chosen)


class SpanFilter(ColumnFilter):
    """Filters by how long ago something was, in fixed windows, by the database's clock."""

    spans: ClassVar[dict[str, tuple[timedelta, Any]]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the windows."""
        return [(name, label) for name, (_span, label) in self.spans.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows in the chosen window; none for a word that is no window."""
        if self.value() is None:
            return queryset
        chosen = self.spans.get(self.value() or "")
        if chosen is None:
            return queryset.none()
        store = store_for(queryset.db)
        return self.within(queryset, store.now() - chosen[0])

    def within(self, rows: QuerySet[Any], since: Any) -> QuerySet[Any]:
        """Return those that are not older than ``since``."""
        return rows.filter((f"{self.parameter_name}_at__gte", since))


LAST: dict[str, tuple[timedelta, Any]] = {
    "1h": (timedelta(hours=1), _("In the last hour")),
    "24h": (timedelta(days=1), _("In the last 24 hours")),
    "7d": (timedelta(days=7), _("In the last 7 days")),
}


class EnqueuedFilter(SpanFilter):
    """Filters by when a job was enqueued."""

    title = _("enqueued")
    parameter_name = "enqueued"
    spans = LAST


class DiedFilter(SpanFilter):
    """Filters dead letters by when they died."""

    title = _("died")
    parameter_name = "died"
    spans = LAST
    # The list is in this order.
    reach = Reach.PAGE


class LateFilter(SpanFilter):
    """Filters live jobs that should have begun some time ago: ready, or scheduled and past their time."""

    title = _("late")
    parameter_name = "late"
    spans: ClassVar[dict[str, tuple[timedelta, Any]]] = {
        "1m": (timedelta(minutes=1), _("Due for a minute")),
        "10m": (timedelta(minutes=10), _("Due for ten minutes")),
        "1h": (timedelta(hours=1), _("Due for an hour")),
    }

    def within(self, rows: QuerySet[Any], since: Any) -> QuerySet[Any]:
        """Return those that were due before ``since``, and that no worker has taken."""
        waits = Q(state=JobState.READY) | Q(state=JobState.SCHEDULED)
        return rows.filter(waits, ready_at__lte=since)


class TypedFilter(ColumnFilter):
    """Filters by what a person types: the values are too many for a choice, and to find them all would be a scan."""

    template = "admin/django_workqueue/includes/typed_filter.html"
    lookup: ClassVar[str]

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        super().__init__(request, *args)
        # A new filter begins on the first page.
        left_out = {self.parameter_name, "after", "from", "e"}
        self._others = [(name, text) for name, texts in request.GET.lists() for text in texts if name not in left_out]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return none: there is a field instead."""
        return []

    def has_output(self) -> bool:
        """Hold always."""
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the one field, with what the other filters have."""
        yield {
            "display": self.value() or "",
            "name": self.parameter_name,
            "others": self._others,
            "selected": bool(self.value()),
            "query_string": changelist.get_query_string(remove=[self.parameter_name]),
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that are meant."""
        return queryset.filter((self.lookup, self.value())) if self.value() else queryset


class TaskFilter(TypedFilter):
    """Filters by the beginning of a task's dotted path."""

    title = _("task")
    parameter_name = "task"
    lookup = "task__startswith"


class TenantFilter(TypedFilter):
    """Filters by tenant."""

    title = _("tenant")
    parameter_name = "tenant"
    lookup = "tenant"
