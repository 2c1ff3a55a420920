"""Look: bounded reads of jobs, for those who list and choose them. Nothing is locked, counted or scanned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Model, OuterRef, Q, QuerySet, Subquery

from ..domain.contract import TaskResultDoesNotExist
from ..domain.registry import call_plan, resolve
from ..domain.scope import Scope, Tenants
from ..domain.states import Ending, JobState
from ..exceptions import InvalidJobError, JobNotFoundError, TaskNotRegisteredError
from ..models import DeadLetter, Failure, FinishedJob, Job, Worker
from ..models.base import JobColumns
from ..store import store_for
from .keyset import Keyset, Position
from .results import find

WINDOW = 100_000
"""Rows that a condition without an index looks through before it asks whether to look further back."""
MOST_FAILURES = 50
"""Failed attempts that are told of one job, the latest ones: it may have thousands."""
NEWEST = Keyset(("-id",))
LAST_DEAD = Keyset(("-died_at", "-id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is looked for. None looks for any."""

    queue: str | None = None
    tenant: Tenants = None
    """One, or several."""
    task: str | None = None
    state: str | None = None
    """A word of JobState or of Ending; None looks for live jobs in any state."""
    error: str | None = None
    """The class that ended the last attempt, by its dotted path or by its last part."""
    group: str | None = None
    """The fingerprint of dead letters of one cause."""

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves rows out."""
        return self != Wanted()

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return those of ``rows`` that are meant, whatever their state."""
        given = {"queue": self.queue, "task": self.task}
        rows = rows.filter(**{name: value for name, value in given.items() if value is not None})
        rows = Scope.of(self.tenant).apply(rows)
        if self.error is not None:
            rows = rows.filter(Q(error_class=self.error) | Q(error_class__endswith=f".{self.error}"))
        return rows


class Page(NamedTuple):
    """Rows in order, when they were read by the clock that stamps them, and where to go on; None at the end."""

    rows: list[Any]
    read_at: datetime
    next: str | None


def jobs(wanted: Wanted, *, after: str | None = None, limit: int = 50, database: str | None = None) -> Page:
    """
    Return up to ``limit`` live or finished jobs, newest first, behind the place ``after`` of an earlier page.

    At most WINDOW rows are looked at, but for a state that few jobs are in: a page may be empty and still not the last.
    Raises InvalidJobError for a place that no page has given.
    """
    rows: QuerySet[Any] = Job.objects.select_related("lease")
    window: QuerySet[Any] | None = Job.objects.all()
    if wanted.state in Ending.values:
        rows, window = FinishedJob.objects.filter(outcome=wanted.state), FinishedJob.objects.all()
    elif wanted.state in JobState.values:
        rows = rows.filter(state=wanted.state)
        few = store_for(database).few_in_state(wanted.state, wanted.queue)
        if few is not None:
            rows, window = rows.filter(pk__in=few), None
    place: dict[str, Any] = {"after": after, "limit": limit, "database": database}
    return _page(_with_error(rows), NEWEST, wanted, window=window, **place)


def dead(wanted: Wanted, *, after: str | None = None, limit: int = 50, database: str | None = None) -> Page:
    """Return up to ``limit`` dead letters, those that died last first. See ``jobs``."""
    # An index has the letters of a group in this order: the window is one on them alone.
    rows = DeadLetter.objects.all() if wanted.group is None else DeadLetter.objects.filter(fingerprint=wanted.group)
    return _page(_with_error(rows), LAST_DEAD, wanted, window=rows, after=after, limit=limit, database=database)


def workers(*, after: str | None = None, limit: int = 50, database: str | None = None) -> Page:
    """Return up to ``limit`` worker processes by their ids, those that went silent lately among them."""
    store = store_for(database)
    rows = Worker.objects.using(store.alias).order_by("pk")
    found = list((rows if after is None else rows.filter(pk__gt=after))[: limit + 1])
    return Page(found[:limit], store.now(), found[limit - 1].pk if len(found) > limit else None)


class Found(NamedTuple):
    """One job, wherever it is, with its latest failures, oldest first."""

    row: Job | FinishedJob | DeadLetter
    failures: list[Failure]
    read_at: datetime


def job(job_id: UUID, *, tenant: Tenants = None, database: str | None = None) -> Found:
    """Return one job: live, finished or dead. Raises JobNotFoundError, with ``tenant`` for another tenant's too."""
    store = store_for(database)
    try:
        row = find(store, job_id)
    except TaskResultDoesNotExist:
        raise JobNotFoundError(job_id) from None
    if row.tenant not in Scope.of(tenant):
        raise JobNotFoundError(job_id)
    latest = Failure.objects.using(store.alias).filter(job_id=job_id).order_by("-id")[:MOST_FAILURES]
    return Found(row, list(reversed(latest)), store.now())


def present(
    model: type[JobColumns], ids: Iterable[UUID], *, tenant: Tenants = None, database: str | None = None
) -> set[UUID]:
    """Return those of ``ids`` that are in the table of ``model``, with ``tenant`` only that one's."""
    rows = model._default_manager.using(store_for(database).alias).filter(pk__in=list(ids))
    return set(Scope.of(tenant).apply(rows).values_list("pk", flat=True))


def running(ids: Iterable[UUID], *, database: str | None = None) -> set[UUID]:
    """Return those of ``ids`` that a worker holds."""
    rows = Job.objects.using(store_for(database).alias).filter(pk__in=list(ids), state=JobState.LEASED)
    return set(rows.values_list("pk", flat=True))


def argument_names(row: JobColumns) -> list[str]:
    """Return the names of a job's arguments, without their values: by the task's signature where it is known."""
    try:
        count, keywords = len(row.decoded_args), list(row.decoded_kwargs)
    except ValueError:
        return []
    named = _positional(row.task)[:count]
    return [*named, *(f"args[{place}]" for place in range(len(named), count)), *keywords]


def _positional(path: str) -> list[str]:
    try:
        task = resolve(path)
    except TaskNotRegisteredError:
        return []
    parameters = call_plan(task.func).signature.parameters.values()
    names = [each.name for each in parameters if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}]
    return list(islice(names, int(task.takes_context), None))


def _with_error(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Add the class and the kind of the last failed attempt, by one index descent for each row."""
    last = Failure.objects.filter(job_id=OuterRef("pk")).order_by("-id")
    error, kind = (Subquery(last.values(name)[:1]) for name in ("error_class", "kind"))
    annotated: QuerySet[Any] = rows.annotate(error_class=error, failure_kind=kind)
    return annotated


def _page(
    rows: QuerySet[Any],
    keyset: Keyset,
    wanted: Wanted,
    *,
    window: QuerySet[Any] | None,
    after: str | None,
    limit: int,
    database: str | None,
) -> Page:
    store = store_for(database)
    start = None if after is None else _place(rows.model, keyset, after)
    behind = keyset.after(rows.using(store.alias).order_by(*keyset.columns), start)
    end = None
    if window is not None and wanted.is_narrow:
        end = _floor(window.using(store.alias), keyset, start)
    found = list(wanted.apply(keyset.until(behind, end))[: limit + 1])
    if len(found) > limit:
        end = keyset.position(found[limit - 1])
    return Page(found[:limit], store.now(), None if end is None else keyset.write(rows.model, end))


def _floor(window: QuerySet[Any], keyset: Keyset, start: Position | None) -> Position | None:
    """Return the last place of the window; None when its rows end before it does."""
    rows = keyset.after(window.order_by(*keyset.columns), start)
    return next(iter(rows.values_list(*keyset.names)[WINDOW - 1 : WINDOW]), None)


def _place(model: type[Model], keyset: Keyset, text: str) -> Position:
    try:
        return keyset.read(model, text)
    except ValueError:
        raise InvalidJobError(f"{text!r} is no place in this list. Take what an earlier page gave.") from None
