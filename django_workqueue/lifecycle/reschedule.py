"""
Reschedule: what people do to schedules. The admin calls these; whether the caller may is for it to ask.

Every function takes ``database``, the alias of the queue's database; None is the one that the settings name.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from ..domain.clock import aware, stored
from ..domain.registry import resolve
from ..domain.schedules import next_few
from ..domain.states import OffReason, Origin
from ..exceptions import InvalidScheduleError
from ..models import Firing, Schedule
from ..store import Store, store_for
from ..store.enqueue import Stored
from .declare import check_name, check_task
from .enqueue import enqueue
from .schedule import find_fault, replanned, request_of

EDITABLE = (
    "name", "task", "args", "kwargs", "queue", "tenant", "priority", "cron", "interval", "zone", "starts_at", "ends_at",
    "catch_up", "overlap", "enabled", "off_reason",
)  # fmt: skip
"""Columns that a person may set."""

logger = logging.getLogger("django_workqueue.schedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """One schedule at one moment. Its times have the schedule's own zone."""

    name: str
    task: str
    when: str
    """In words."""
    enabled: bool
    origin: str
    off_reason: str
    next_at: datetime | None
    last_at: datetime | None
    fault: str


def schedules(*, database: str | None = None) -> list[ScheduleState]:
    """Return every schedule, in name order."""
    rows = Schedule.objects.using(store_for(database).alias).order_by("name")
    return [_state(row) for row in rows]


def switch_on(name: str, *, database: str | None = None) -> bool:
    """
    Let a schedule fire again, from its next firing on: what it missed while it was off is not made up for.

    Returns False when it was on. Raises ScheduleNotFoundError, or InvalidScheduleError when it cannot be followed.
    """
    return _switch(store_for(database), name, {"enabled": True, "off_reason": ""})


def switch_off(name: str, *, database: str | None = None) -> bool:
    """Keep a schedule from firing, from now on. False when it was off. Raises ScheduleNotFoundError."""
    return _switch(store_for(database), name, {"enabled": False, "off_reason": OffReason.PERSON})


def run_once(name: str, *, database: str | None = None) -> Stored:
    """
    Enqueue a schedule's job now, whether it is on or off, and leave its times as they are.

    Its overlap policy holds: where the job of an earlier firing is live, that one is answered as a duplicate. Raises
    ScheduleNotFoundError, or InvalidScheduleError and the errors of an enqueue when it cannot be used.
    """
    store = store_for(database)
    with store.transaction():
        row = store.await_schedule(name=name)
        now = store.now()
        (stored,) = enqueue([request_of(row, now)], database=store.alias)
        noted = Firing(schedule=row, fired_at=now, job_id=stored.job.pk, skipped=stored.duplicate)
        store.note_firings(row, [noted])
    logger.info("Schedule %r was run once by a person.", name, extra={"schedule": name})
    return stored


def keep(row: Schedule, *, database: str | None = None) -> None:
    """
    Store a schedule that a person has made or edited. Its next firing changes only where its times do.

    Raises InvalidScheduleError when it cannot be followed.
    """
    store = store_for(database)
    now = store.now()
    row.created_at = now if row.pk is None else row.created_at
    if fault := find_fault(row):
        raise InvalidScheduleError(fault)
    row.off_reason = "" if row.enabled else row.off_reason or OffReason.PERSON
    with store.transaction():
        # What the form was filled from may be old: a worker has moved the schedule on since.
        held = row if row.pk is None else store.await_schedule(pk=row.pk)
        changes = {name: getattr(row, name) for name in EDITABLE}
        changes |= replanned(held, changes, now)
        if row.pk is None:
            for name, value in changes.items():
                setattr(row, name, value)
            store.create_schedule(row)
        else:
            store.move_schedule(held, changes)


def check(row: Schedule) -> None:
    """
    Raise what names the fault unless a schedule can be followed, and this process knows its task and how to call it.

    Raises InvalidScheduleError, InvalidJobError, PayloadError or TaskNotRegisteredError.
    """
    if row.pk is None:
        row.created_at = stored(timezone.now())
    check_name(row.name)
    if fault := find_fault(row):
        raise InvalidScheduleError(fault)
    check_task(resolve(row.task), {name: getattr(row, name) for name in EDITABLE})


def remove(name: str, *, database: str | None = None) -> None:
    """
    Delete a schedule that was made in the admin; its jobs stay.

    Raises ScheduleNotFoundError, or InvalidScheduleError for one that is in the code, which would come back.
    """
    store = store_for(database)
    with store.transaction():
        row = store.await_schedule(name=name)
        if row.origin == Origin.CODE and row.off_reason != OffReason.REMOVED:
            raise InvalidScheduleError(f"Schedule {name!r} is in the code. Remove it there, and run a sync.")
        store.delete_schedule(row.pk)
    logger.info("Schedule %r was deleted.", name, extra={"schedule": name})


def upcoming(row: Schedule, now: datetime, count: int = 5) -> list[datetime]:
    """Return the next ``count`` firings of a schedule, in its own zone; none while it is off or at fault."""
    if not row.enabled or find_fault(row):
        return []
    return next_few(row.timing, aware(now) + row.skew, count)


def _switch(store: Store, name: str, changes: dict[str, Any]) -> bool:
    with store.transaction():
        row = store.await_schedule(name=name)
        if row.enabled == changes["enabled"]:
            return False
        if changes["enabled"] and (fault := find_fault(row)):
            raise InvalidScheduleError(fault)
        store.move_schedule(row, changes | replanned(row, changes, store.now()))
    logger.info("Schedule %r was switched %s.", name, "on" if changes["enabled"] else "off", extra={"schedule": name})
    return True


def _state(row: Schedule) -> ScheduleState:
    fault = row.fault or find_fault(row)
    return ScheduleState(
        name=row.name,
        task=row.task,
        when=words_of(row),
        enabled=row.enabled,
        origin=row.origin,
        off_reason=row.off_reason,
        next_at=_local(row, row.next_at, row.skew) if row.enabled else None,
        last_at=_local(row, row.last_at, timedelta()),
        fault=fault,
    )


def words_of(row: Schedule) -> str:
    """Return when a schedule fires, in words; as it is written where that cannot be read."""
    try:
        row.timing.check()
    except InvalidScheduleError:
        return row.cron or str(row.interval)
    return row.timing.words()


def _local(row: Schedule, moment: datetime | None, passed: timedelta) -> datetime | None:
    if moment is None:
        return None
    firing = aware(moment) + passed
    try:
        return row.timing.local(firing)
    except InvalidScheduleError:
        return firing
