"""Schedules as code declares them: by ``schedule=`` on a task, or in the settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings as django_settings
from django.utils import timezone

from ..conf import get_settings
from ..exceptions import InvalidScheduleError
from .schedules import Timing
from .states import CatchUp, Overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """
    When a task is enqueued again and again, and with what. Exactly one of ``cron`` and ``interval`` is given.

    What is wrong with one is reported by the system checks, so that it keeps no module from being imported.
    """

    name: str = ""
    """Empty: the task's dotted path. The second schedule of a task needs a name of its own."""
    cron: str = ""
    """Five fields: minute, hour, day of the month, month, day of the week."""
    interval: timedelta | float | None = None
    """A timedelta or seconds, from one second up."""
    zone: str = ""
    """A name of the IANA database, such as ``"Europe/Berlin"``; empty stands for TIME_ZONE."""
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    queue: str | None = None
    """None, here and for the next two, takes the task's own."""
    tenant: str | None = None
    priority: int | None = None
    enabled: bool = True
    starts_at: datetime | None = None
    """No firing is before it; one without a zone is in ``zone``."""
    ends_at: datetime | None = None
    catch_up: str = CatchUp.LATEST.value
    """What becomes of missed firings: ``"latest"``, ``"skip"`` or ``"all"``."""
    overlap: str | None = None
    """While an earlier job is live: ``"skip"`` the firing or ``"allow"`` it. None: skip, unless all catch up."""

    @property
    def timing(self) -> Timing:
        """When it fires; not checked."""
        zone = self.zone or django_settings.TIME_ZONE
        seconds = self.interval
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        return Timing(
            cron=self.cron,
            interval=timedelta(seconds=seconds) if is_number else seconds,  # type: ignore[arg-type]
            zone=zone,
            starts_at=_placed("starts_at", self.starts_at, zone),
            ends_at=_placed("ends_at", self.ends_at, zone),
        )

    @property
    def overlap_policy(self) -> str:
        """The policy that holds."""
        if self.overlap is not None:
            return self.overlap
        return Overlap.ALLOW.value if self.catch_up == CatchUp.ALL else Overlap.SKIP.value


Schedule = str | timedelta | Timetable | Sequence[Timetable]
"""What ``schedule=`` on a task takes: a cron line, an interval, a timetable or several."""

_declared: dict[str, Any] = {}
_KEYS = {field.name.upper() for field in fields(Timetable)} - {"NAME"} | {"TASK"}


@dataclass(frozen=True, slots=True)
class Declared:
    """One schedule in code: where it stands, its name, its task's path, and the timetable, or what is wrong."""

    where: str
    name: str
    task: str
    timetable: Timetable
    fault: str = ""


def declare(task: str, schedule: Any) -> None:
    """Remember what ``schedule=`` says of the task at this path. A module that is imported again replaces its own."""
    _declared[task] = schedule


def declared() -> Iterator[Declared]:
    """Yield every schedule that tasks and settings declare."""
    for task, given in _declared.items():
        for schedule in given if isinstance(given, list | tuple) else [given]:
            yield _of_task(task, schedule)
    for name, entry in get_settings().schedules.items():
        yield _of_settings(name, entry)


def _of_task(task: str, given: Any) -> Declared:
    where = f"The schedule of task {task!r}"
    match given:
        case Timetable():
            return Declared(where, given.name or task, task, given)
        case str():
            return Declared(where, task, task, Timetable(cron=given))
        case timedelta():
            return Declared(where, task, task, Timetable(interval=given))
        case _:
            fault = f"schedule is {given!r}. Pass a cron line, a timedelta, a Timetable or a list of timetables."
            return Declared(where, task, task, Timetable(), fault)


def _of_settings(name: Any, entry: Mapping[str, Any]) -> Declared:
    where = f"WORKQUEUE['SCHEDULES'][{name!r}]"
    given = {key: value for key, value in entry.items() if key in _KEYS and key != "TASK"}
    timetable = replace(Timetable(), **{key.lower(): value for key, value in given.items()})
    return Declared(where, name, entry.get("TASK", ""), timetable, _fault_of_keys(entry))


def _fault_of_keys(entry: Mapping[str, Any]) -> str:
    for key in sorted(entry.keys() - _KEYS, key=str):
        close = difflib.get_close_matches(str(key).upper(), _KEYS, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Known keys: {', '.join(sorted(_KEYS))}."
        return f"{key!r} is not a key of a schedule. {hint}"
    return "" if "TASK" in entry else "TASK is missing. Give the dotted path of a task."


def _placed(name: str, moment: Any, zone: str) -> datetime | None:
    """Return a moment with a zone."""
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise InvalidScheduleError(f"{name} is {moment!r}. Pass a datetime.")
    if timezone.is_aware(moment):
        return moment
    try:
        return moment.replace(tzinfo=ZoneInfo(zone))
    except Exception as error:  # as when the zone itself is checked
        raise InvalidScheduleError(f"zone is {zone!r}, which no time zone is called. Try 'Europe/Berlin'.") from error
