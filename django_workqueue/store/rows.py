"""
New jobs as rows, without the ORM's compiler, which takes longer to write an INSERT than PostgreSQL to carry it out.

Columns in which no job has anything are left out: options that are not in use cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import DatabaseDefault

from ..models import Job

FIELDS = {field.attname: field for field in Job._meta.concrete_fields if not field.generated}
_STAMPS = ("enqueued_at", "ready_at")
_OPTIONAL = tuple(name for name, field in FIELDS.items() if field.null)
_options = itemgetter(*_OPTIONAL)
# Of the others, what Django hands over is what it stores.
_CONVERTED = {"UUIDField", "DateTimeField"}


def columns_of(jobs: Iterable[Job]) -> tuple[str, ...]:
    """Return the columns in which any of the stamped jobs has something."""
    absent = set(_OPTIONAL)
    for values in set(map(_options, (job.__dict__ for job in jobs))):
        absent.difference_update(name for name, value in zip(_OPTIONAL, values, strict=True) if value is not None)
    return tuple(name for name in FIELDS if name not in absent)


def insert_one(connection: BaseDatabaseWrapper, job: Job) -> None:
    """Store a job that cannot clash, where the driver takes its values as they are. It has both its stamps then."""
    row = job.__dict__
    columns = tuple([name for name in FIELDS if row[name] is not None and type(row[name]) is not DatabaseDefault])
    unstamped = any(stamp not in columns for stamp in _STAMPS)
    statement = _insert(Job._meta.db_table, columns) + (f" RETURNING {', '.join(_STAMPS)}" if unstamped else "")
    # As the ORM does: after an error, the caller's transaction must be rolled back before anything else.
    with transaction.mark_for_rollback_on_error(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(statement, [row[name] for name in columns])
        if unstamped:
            job.enqueued_at, job.ready_at = cursor.fetchone()


def insert_many(connection: BaseDatabaseWrapper, jobs: Sequence[Job], *, where_free: bool = False) -> None:
    """Store stamped jobs by one statement, carried out for each, or those of them whose keys are free."""
    if not jobs:
        return
    columns = columns_of(jobs)
    statement = _insert(Job._meta.db_table, columns) + (" ON CONFLICT DO NOTHING" if where_free else "")
    with transaction.atomic(using=connection.alias, savepoint=False), connection.cursor() as cursor:
        cursor.executemany(statement, values_of(jobs, columns, connection))


@lru_cache(maxsize=256)
def _insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"


def values_of(jobs: Sequence[Job], columns: Sequence[str], connection: BaseDatabaseWrapper) -> list[tuple[Any, ...]]:
    """Return the jobs' values as the database takes them."""
    pick = itemgetter(*columns)
    rows = zip(*(pick(job.__dict__) for job in jobs), strict=True)
    return list(
        zip(*(_stored(name, values, connection) for name, values in zip(columns, rows, strict=True)), strict=True)
    )


def _stored(name: str, values: Sequence[Any], connection: BaseDatabaseWrapper) -> Sequence[Any]:
    field = FIELDS[name]
    if getattr(field, "target_field", field).get_internal_type() not in _CONVERTED:
        return values
    return [field.get_db_prep_save(value, connection) for value in values]
