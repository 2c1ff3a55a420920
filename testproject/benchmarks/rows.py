"""
Backlogs, finished jobs and their ids, written by the server itself: a million rows in seconds.

The rows are what ``enqueue`` would have stored at ``ARRIVALS_PER_MILLISECOND``, one after the other, ending a minute
ago. Ids are of version 7 like the package's own, but follow from the row's number, so that single rows can be looked up
without having been read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Model
from psycopg import sql

from django_workqueue.models import FinishedJob, Job

from .database import Database

ARRIVALS_PER_MILLISECOND = 10
QUEUE = "default"

_MOMENT = f"(%(begun_ms)s::bigint + i / {ARRIVALS_PER_MILLISECOND})"
_TIME = f"to_timestamp({_MOMENT} / 1000.0)"
_ID = (
    f"(lpad(to_hex({_MOMENT}), 12, '0') || '7' || lpad(to_hex(i %% 4096), 3, '0') || '8' || lpad(to_hex(i), 15, '0'))"
    "::uuid"
)
_JOB = {
    "id": _ID,
    "queue": "%(queue)s",
    "tenant": "CASE WHEN %(tenants)s = 1 THEN '' ELSE 'tenant-' || i %% %(tenants)s END",
    "task": "%(task)s",
    "args": "'[' || i || ']'",
    "enqueued_at": _TIME,
}
_READY = {**_JOB, "ready_at": _TIME}
_FINISHED = {
    **_JOB,
    "outcome": "'succeeded'",
    "attempts": "1",
    "started_at": _TIME,
    "finished_at": _TIME,
    "expires_at": f"{_TIME} + interval '1 day'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows numbered from ``first``, spread evenly over tenants."""

    count: int
    task: str
    tenants: int = 1
    first: int = 1
    begun_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000 - 60_000)

    def id(self, number: int) -> UUID:
        """Return the id of a row, as the server makes it."""
        moment = self.begun_ms + number // ARRIVALS_PER_MILLISECOND
        return UUID(f"{moment:012x}7{number % 4096:03x}8{number:015x}")

    def insert_ready(self, database: Database) -> None:
        """Store them as jobs that wait."""
        self._insert(database, Job, _READY)

    def insert_finished(self, database: Database) -> None:
        """Store them as jobs that succeeded and are kept for a day."""
        self._insert(database, FinishedJob, _FINISHED)

    def _insert(self, database: Database, model: type[Model], expressions: dict[str, str]) -> None:
        parameters = {"queue": QUEUE, "task": self.task, "tenants": self.tenants, "begun_ms": self.begun_ms}
        insert(database, model, expressions, self.first + self.count - 1, first=self.first, **parameters)


def insert(
    database: Database,
    model: type[Model],
    expressions: Mapping[str, str],
    last: int,
    *,
    first: int = 1,
    **parameters: Any,
) -> None:
    """
    Let the server store a row for each number ``i`` from ``first`` to ``last``.

    It has what ``expressions`` say, in which ``parameters`` may be named, and the model's defaults elsewhere.
    """
    values = _defaults(model, set(expressions))
    chosen = [*map(sql.SQL, expressions.values()), *map(sql.Literal, values.values())]
    statement = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM generate_series(%(first)s::int, %(last)s::int) i").format(
        sql.Identifier(model._meta.db_table),
        sql.SQL(", ").join(map(sql.Identifier, [*expressions, *values])),
        sql.SQL(", ").join(chosen),
    )
    database.execute(statement, {**parameters, "first": first, "last": last})


def _defaults(model: type[Model], given: set[str]) -> dict[str, object]:
    """Return what the model itself would store in the other columns; those that stay NULL are left out."""
    values = {}
    for each in model._meta.local_concrete_fields:
        if each.attname not in given and not each.generated and not each.has_db_default():
            value = each.get_default()
            values[each.attname] = str(value) if isinstance(value, str) else value
    return {name: value for name, value in values.items() if value is not None}


def own_tables() -> list[str]:
    """Return the names of the package's tables."""
    return [model._meta.db_table for model in apps.get_app_config("django_workqueue").get_models()]
