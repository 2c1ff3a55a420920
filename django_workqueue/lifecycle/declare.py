"""
Declare: what code says about schedules, on its way into the rows.

While a new version is rolled out, processes of both versions start. So a process adds what is missing and brings in
what it alone knows, and leaves alone what a newer one has written: each row remembers the versions that it had. To go
back to one of them, and to switch off what is no longer in the code, is for a person: ``sync``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ..conf import get_settings
from ..domain.clock import stored
from ..domain.contract import AnyTask, InvalidTask
from ..domain.encoding import encode
from ..domain.registry import check_fit, resolve
from ..domain.schedules import digest_of
from ..domain.states import OffReason, Origin
from ..domain.timetables import Declared, declared
from ..exceptions import ArgumentsDoNotFitError, InvalidScheduleError, TaskNotRegisteredError
from ..models import Schedule
from ..models.schedule import CRON_LENGTH, SCHEDULE_NAME_LENGTH, ZONE_LENGTH
from ..store import Store, store_for
from .schedule import find_fault, replanned, review

logger = logging.getLogger("django_workqueue.schedule")

_MOST_FORMER = 50


class Definition(NamedTuple):
    """A schedule in code that can be used: its name, the columns of its row, whether it is on, and its version."""

    name: str
    columns: dict[str, Any]
    enabled: bool
    digest: str


class Misdeclared(NamedTuple):
    """A schedule in code that cannot be used: where it stands, its name, and what is wrong."""

    where: str
    name: str
    problem: str
    is_unknown_task: bool = False


@dataclass(slots=True)
class Synced:
    """What a sync changed, by name."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """Switched off, as they are no longer in the code."""
    refused: list[Misdeclared] = field(default_factory=list)
    """In the code, and left as they are in the rows: they cannot be used."""


def definitions(now: datetime) -> tuple[list[Definition], list[Misdeclared]]:
    """Return the schedules in code that can be used, and those that cannot. ``now`` is any moment of this project."""
    usable: dict[str, Definition] = {}
    refused: list[Misdeclared] = []
    for each in declared():
        try:
            definition = _definition(each, now)
        except TaskNotRegisteredError as error:
            refused.append(Misdeclared(each.where, each.name, str(error), is_unknown_task=True))
        except Exception as error:  # noqa: BLE001 - code may say anything, and the others must fire
            refused.append(Misdeclared(each.where, each.name, str(error)))
        else:
            if definition.name in usable:
                problem = f"Another schedule in code has the name {each.name!r}. Give each its own."
                refused.append(Misdeclared(each.where, each.name, problem))
            usable.setdefault(definition.name, definition)
    return list(usable.values()), refused


def register(store: Store) -> None:
    """Bring what code declares into the rows, at the start of a process. What a newer version wrote stays."""
    if any(True for _ in declared()):
        _bring_in(store, Synced(), deliberate=False)


def sync(*, database: str | None = None) -> Synced:
    """
    Make the rows what this process's code says: add, change, and switch off what is no longer declared.

    Nothing is deleted, and schedules that were made in the admin are not touched.
    """
    store, done = store_for(database), Synced()
    known = _bring_in(store, done, deliberate=True)
    for row in store.code_schedules():
        if row.name not in known and row.off_reason != OffReason.REMOVED:
            _remove(store, row.name)
            done.removed.append(row.name)
    behind = review(store).behind
    while behind:
        behind = review(store, behind).behind
    return done


# -- from code to columns ----------------------------------------------------------------------------------------


def _definition(given: Declared, now: datetime) -> Definition:
    """Return a declared schedule, checked. Raises what names the fault."""
    if given.fault:
        raise InvalidScheduleError(given.fault)
    check_name(given.name)
    task = resolve(given.task)
    columns = _columns(given, task)
    check_task(task, columns)
    if fault := find_fault(Schedule(name=given.name, created_at=now, **columns)):
        raise InvalidScheduleError(fault)
    enabled = bool(given.timetable.enabled)
    return Definition(given.name, columns, enabled, digest_of(sorted(columns.items(), key=str), enabled))


def _columns(given: Declared, task: AnyTask) -> dict[str, Any]:
    table, timing = given.timetable, given.timetable.timing
    most = get_settings().max_payload_bytes
    queue, tenant, priority = table.queue, table.tenant, table.priority
    return {
        "task": given.task,
        "args": encode(list(table.args), "args", most),
        "kwargs": encode(dict(table.kwargs), "kwargs", most),
        "queue": task.queue_name if queue is None else queue,
        "tenant": getattr(task, "tenant", "") if tenant is None else tenant,
        "priority": task.priority if priority is None else priority,
        "cron": timing.cron,
        "interval": timing.interval,
        "zone": timing.zone,
        "starts_at": timing.starts_at and stored(timing.starts_at),
        "ends_at": timing.ends_at and stored(timing.ends_at),
        "catch_up": table.catch_up,
        "overlap": table.overlap_policy,
    }


def check_name(name: Any) -> None:
    """Raise InvalidScheduleError unless a schedule can have this name."""
    if not isinstance(name, str) or not 0 < len(name) <= SCHEDULE_NAME_LENGTH or not name.isprintable():
        raise InvalidScheduleError(
            f"The name is {name!r}. Give it up to {SCHEDULE_NAME_LENGTH} printable characters, by Timetable(name=...)."
        )


def check_task(task: AnyTask, columns: dict[str, Any]) -> None:
    """Raise what names the fault unless the task may be enqueued so, and the columns hold what they are given."""
    for name, most in (("cron", CRON_LENGTH), ("zone", ZONE_LENGTH)):
        if isinstance(columns[name], str) and len(columns[name]) > most:
            raise InvalidScheduleError(f"{name} has {len(columns[name])} characters; at most {most} are kept.")
    row = Schedule(args=columns["args"], kwargs=columns["kwargs"])
    try:
        check_fit(task, row.decoded_args, row.decoded_kwargs)
    except ArgumentsDoNotFitError as error:
        raise InvalidScheduleError(str(error)) from error
    # A task checks itself, and whether its backend permits the queue, when it is made.
    try:
        task.using(queue_name=columns["queue"], priority=columns["priority"])
    except InvalidTask as error:
        raise InvalidScheduleError(str(error)) from error


# -- from columns to rows ----------------------------------------------------------------------------------------


def _bring_in(store: Store, done: Synced, *, deliberate: bool) -> set[str]:
    """Add and change rows, note it in ``done``, and return the names that are in the code, usable or not."""
    usable, refused = definitions(store.now())
    rows = store.schedules_of(each.name for each in usable)
    missing = [each for each in usable if each.name not in rows]
    store.add_schedules([_row(each) for each in missing])
    done.added += [each.name for each in missing]
    for each in usable:
        row = rows.get(each.name)
        if row is not None and row.origin != Origin.CODE:
            problem = f"A schedule of the name {each.name!r} was made in the admin. Rename one of the two."
            refused.append(Misdeclared("The schedule in code", each.name, problem))
        elif row is not None and row.code_digest != each.digest and _change(store, each, deliberate=deliberate):
            done.changed.append(each.name)
    for fault in refused:
        logger.error("%s cannot be used: %s", fault.where, fault.problem, extra={"schedule": str(fault.name)})
    done.refused += refused
    return {each.name for each in usable} | {each.name for each in refused}


def _row(definition: Definition) -> Schedule:
    return Schedule(
        name=definition.name,
        origin=Origin.CODE,
        code_digest=definition.digest,
        enabled=definition.enabled,
        off_reason="" if definition.enabled else OffReason.CODE,
        **definition.columns,
    )


def _change(store: Store, new: Definition, *, deliberate: bool) -> bool:
    """Write another version into a row, and return whether it was done. A former version needs a deliberate act."""
    with store.transaction():
        row = store.await_schedule(name=new.name)
        if row.code_digest == new.digest:
            return False
        if new.digest in row.former_digests.split() and not deliberate:
            logger.warning(
                "Schedule %r was changed by other code, and this process has a former version of it. If that is the "
                "one to go by, run 'manage.py workqueue schedules sync'.",
                new.name,
                extra={"schedule": new.name},
            )
            return False
        changes = new.columns | _switched(row, on=new.enabled) | _versions(row, new.digest)
        return store.move_schedule(row, changes | replanned(row, changes, store.now()))


def _remove(store: Store, name: str) -> None:
    with store.transaction():
        row = store.await_schedule(name=name)
        changes = {"enabled": False, "off_reason": OffReason.REMOVED} | _versions(row, "")
        store.move_schedule(row, changes | replanned(row, changes, store.now()))


def _switched(row: Schedule, *, on: bool) -> dict[str, Any]:
    """Return whether the schedule is on now. What a person has switched off stays off."""
    if not on:
        return {"enabled": False, "off_reason": row.off_reason or OffReason.CODE}
    if row.off_reason in {OffReason.CODE, OffReason.REMOVED}:
        return {"enabled": True, "off_reason": ""}
    return {}


def _versions(row: Schedule, digest: str) -> dict[str, Any]:
    """Return the version of the row, and those that it had: never the present one, so that a return is no former."""
    former = [each for each in (*row.former_digests.split(), row.code_digest) if each and each != digest]
    return {"code_digest": digest, "former_digests": " ".join(former[-_MOST_FORMER:])}
