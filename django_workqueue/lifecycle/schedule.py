"""
Schedule: enqueue what is due, and move its schedule on in the same transaction.

Any number of processes may do it. A schedule is locked from the look to the write, and moves from one firing to the
next by a compare-and-set, so that each firing is enqueued once; who dies before the commit has done nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import DatabaseError, InterfaceError

from ..domain.clock import aware, stored
from ..domain.context import SCHEDULE, SCHEDULED_FOR
from ..domain.registry import check_fit, resolve
from ..domain.schedules import MOST_CAUGHT_UP, check_policies, due_firings
from ..domain.states import JobState, Overlap
from ..exceptions import (
    ArgumentsDoNotFitError,
    InvalidJobError,
    InvalidScheduleError,
    PayloadError,
    QueueFullError,
    QueueUnavailableError,
    TaskNotRegisteredError,
)
from ..models import Firing, Schedule
from ..store import Store
from ..store.enqueue import Stored
from ..store.reap import Lanes
from .enqueue import JobRequest, check, enqueue
from .requests import request_for

logger = logging.getLogger("django_workqueue.schedule")

UNUSABLE = (InvalidScheduleError, InvalidJobError, PayloadError)
"""What is wrong with a schedule itself, whichever code runs."""
UNKNOWN_HERE = (TaskNotRegisteredError, ArgumentsDoNotFitError)
"""What may only be this process's code, which may be older or newer than that of the worker that runs the job."""

PAGE = 1000
"""Schedules looked through in one review."""


class Ticked(NamedTuple):
    """What one round did: the lanes that have new jobs, and how long until the next firing."""

    lanes: Lanes
    wait: timedelta | None
    """None when nothing will fire; zero when something is due that somebody else holds, or that is left for later."""


class Reviewed(NamedTuple):
    """How far a review came: the last id that it read, 0 at the end; what it saw, and whether any of that is on."""

    behind: int
    any_enabled: bool
    rows: int


def tick(store: Store) -> Ticked:
    """
    Carry out what is due by the database's clock, up to a hundred schedules, and say when to come again.

    A fault of one schedule does not keep the others from firing.
    """
    lanes: Lanes = set()
    upcoming = store.upcoming_schedules()
    due = [each.id for each in upcoming if each.wait <= timedelta()]
    for pk in due:
        try:
            lanes |= _do(store, pk, _carry_out)
        except (DatabaseError, InterfaceError, QueueFullError) as error:
            if not isinstance(error, QueueFullError) and store.is_unavailable(error):
                raise
            logger.warning("Schedule %d could not fire (%s); it is tried again.", pk, type(error).__name__)
    if lanes:
        return Ticked(lanes, timedelta())
    return Ticked(lanes, min((max(each.wait, timedelta()) for each in upcoming), default=None))


def review(store: Store, behind: int = 0) -> Reviewed:
    """Plan anew whatever was added or edited since it was planned, in whatever way, among the next thousand."""
    rows = store.schedules_behind(behind, limit=PAGE)
    for row in rows:
        if _is_outdated(row):
            _do(store, row.pk, _plan_anew)
    behind = rows[-1].pk if len(rows) >= PAGE else 0
    return Reviewed(behind, any(row.enabled for row in rows), len(rows))


def planned(row: Schedule, now: datetime) -> dict[str, Any]:
    """Return the columns of a schedule that is planned from ``now`` on: never for a moment that is over."""
    fault = find_fault(row) if row.enabled else ""
    fires = row.enabled and not fault
    return {"plan": row.digest, "fault": fault, "next_at": _next_at(row, now) if fires else None}


def replanned(row: Schedule, changes: dict[str, Any], now: datetime) -> dict[str, Any]:
    """
    Return the plan of a schedule once it has these ``changes``.

    It is a new one only where other times follow from them, or where something was wrong: a firing that is due must
    not be dropped because its arguments were edited.
    """
    names = (column.attname for column in Schedule._meta.concrete_fields)
    after = Schedule(**{name: getattr(row, name) for name in names} | changes)
    return planned(after, now) if after.digest != row.plan or row.fault else {}


def find_fault(row: Schedule) -> str:
    """Return what keeps a schedule from firing, whichever code runs; empty when nothing does."""
    try:
        row.timing.check()
        check_policies(row.catch_up, row.overlap)
        check(_plain(row, *_arguments(row)))
    except UNUSABLE as error:
        return str(error)
    return ""


def request_of(row: Schedule, firing: datetime) -> JobRequest:
    """Return what is enqueued at ``firing``. Where this process does not know the task, without its own options."""
    args, kwargs = _arguments(row)
    plain = _plain(row, args, kwargs)
    try:
        request = request_for(resolve(row.task), args, kwargs, dedupe_key=plain.dedupe_key)
    except UNKNOWN_HERE:
        request = plain
    if plain.dedupe_key:
        # The key is the schedule's, and so is what it covers: the job until it has ended, however long that takes.
        request = request._replace(dedupe_until="finish", dedupe_ttl=None)
    marks = {SCHEDULE: row.name, SCHEDULED_FOR: aware(firing).isoformat()}
    return request._replace(queue=row.queue, tenant=row.tenant, priority=row.priority, marks=marks)


def _plain(row: Schedule, args: list[Any], kwargs: dict[str, Any]) -> JobRequest:
    """Return what a schedule asks for by itself."""
    key = f"schedule:{row.name}" if row.overlap == Overlap.SKIP else None
    return JobRequest(row.task, args, kwargs, key, queue=row.queue, tenant=row.tenant, priority=row.priority)


def _arguments(row: Schedule) -> tuple[list[Any], dict[str, Any]]:
    try:
        return row.decoded_args, row.decoded_kwargs
    except ValueError as error:
        raise InvalidScheduleError(f"The arguments of schedule {row.name!r} cannot be decoded: {error}.") from error


# -- one schedule ------------------------------------------------------------------------------------------------


class _OvertakenError(Exception):
    """Another process moved the schedule on, on a database that locks no rows."""


def _is_outdated(row: Schedule) -> bool:
    """Whether a schedule is to be planned: it was edited, or what was wrong with it may be mended."""
    if row.plan != row.digest:
        return True
    return row.enabled and row.next_at is None and bool(row.fault) and find_fault(row) != row.fault


def _do(store: Store, pk: int, act: Callable[[Store, Schedule], Lanes]) -> Lanes:
    """Lock one schedule and do something to it, and return the lanes that have new jobs."""
    try:
        with store.transaction():
            row = store.hold_schedule(pk)
            return set() if row is None else act(store, row)
    except _OvertakenError:
        return set()
    except (DatabaseError, InterfaceError, QueueUnavailableError, QueueFullError):
        raise
    except Exception as error:  # noqa: BLE001 - its own columns, the task's key or a hook: the others must fire
        _flag(store, pk, str(error) or type(error).__name__)
        return set()


def _plan_anew(store: Store, row: Schedule) -> Lanes:
    if _is_outdated(row):
        columns = planned(row, store.now())
        if store.move_schedule(row, columns) and columns["fault"]:
            _complain(row, columns["fault"])
    return set()


def _carry_out(store: Store, row: Schedule) -> Lanes:
    """Enqueue the firings that are due, and move on to the next."""
    if row.plan != row.digest:
        return _plan_anew(store, row)
    now = store.now()
    if not row.enabled or row.next_at is None or row.next_at > now:
        return set()
    check_policies(row.catch_up, row.overlap)
    firings = due_firings(row.timing, row.catch_up, aware(row.next_at) + row.skew, aware(now) + row.skew)
    jobs = enqueue([request_of(row, firing) for firing in firings], database=store.alias) if firings else []
    made = [firing for firing, job in zip(firings, jobs, strict=True) if not job.duplicate]
    columns = {"fault": _fault_of_code(row), "next_at": _next_at(row, now)}
    if made:
        columns["last_at"] = stored(made[-1])
    if not store.move_schedule(row, columns):
        raise _OvertakenError
    if firings:
        store.note_firings(row, [_noted(row, each, job, now) for each, job in zip(firings, jobs, strict=True)])
    _tell(row, firings, made)
    return _lanes(jobs)


def _noted(row: Schedule, firing: datetime, made: Stored, now: datetime) -> Firing:
    due = stored(firing) - row.skew
    return Firing(schedule=row, due_at=due, fired_at=now, job_id=made.job.pk, skipped=made.duplicate)


def _next_at(row: Schedule, now: datetime) -> datetime | None:
    """
    Return when the first firing after ``now`` is due; None when there is none any more.

    Times without a zone go back by an hour once a year: there the firings of the second hour are passed over, which
    would seem to be due over and over again.
    """
    for firing in row.timing.firings_after(aware(now) + row.skew):
        if (due := stored(firing) - row.skew) > now:
            return due
    return None


def _fault_of_code(row: Schedule) -> str:
    """Return why this process could not run the job. It is enqueued all the same: another one may know the task."""
    try:
        check_fit(resolve(row.task), row.decoded_args, row.decoded_kwargs)
    except UNKNOWN_HERE as error:
        return str(error)
    return ""


def _flag(store: Store, pk: int, fault: str) -> None:
    """Pass a schedule over until it is mended, and say why."""
    with store.transaction():
        row = store.hold_schedule(pk)
        if row is not None and store.move_schedule(row, {"fault": fault, "next_at": None}):
            _complain(row, fault)


def _complain(row: Schedule, fault: str) -> None:
    logger.error("Schedule %r is passed over: %s", row.name, fault, extra={"schedule": row.name})


def _tell(row: Schedule, firings: Sequence[datetime], made: list[datetime]) -> None:
    """Log what became of each firing, and of those that are not even among them."""
    if not firings:
        logger.info("Schedule %r: what it missed is skipped.", row.name, extra={"schedule": row.name})
    if len(firings) == MOST_CAUGHT_UP:
        logger.warning(
            "Schedule %r missed more than %d firings; the last ones are made up for.",
            row.name,
            MOST_CAUGHT_UP - 1,
            extra={"schedule": row.name},
        )
    for firing in firings:
        words = "was enqueued" if firing in made else "is skipped, as the job of an earlier one is still live"
        logger.info("Schedule %r: the firing of %s %s.", row.name, firing, words, extra={"schedule": row.name})


def _lanes(jobs: Iterable[Stored]) -> Lanes:
    return {(job.queue, job.tenant) for job, duplicate in jobs if not duplicate and job.state == JobState.READY}
