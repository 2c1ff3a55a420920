"""
Many jobs at once on PostgreSQL.

An INSERT of a thousand rows through the ORM has nineteen thousand parameters, and takes longer to be written than to be
carried out. COPY is the fastest way in, but breaks off at the first clash. Where keys may clash, the rows travel as
arrays: as many parameters as there are columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import repeat
from operator import is_, itemgetter
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from ..models import Job, WorkflowMember
from .enqueue import batches
from .rows import FIELDS, columns_of

FEWEST = 20
"""From so many jobs on, these ways make up for what they cost more."""

_MEMBER_COLUMNS = tuple(field.attname for field in WorkflowMember._meta.concrete_fields)
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


def copy_in(connection: BaseDatabaseWrapper, jobs: Sequence[Job]) -> None:
    """Store stamped jobs that cannot clash, much faster than the ORM's INSERT."""
    _copy(connection, Job, columns_of(jobs), jobs)


def copy_members(connection: BaseDatabaseWrapper, members: Sequence[WorkflowMember]) -> None:
    """Store new members of workflows, in the same way."""
    _copy(connection, WorkflowMember, _MEMBER_COLUMNS, members)


def _copy(
    connection: BaseDatabaseWrapper, model: type[Model], columns: Sequence[str], instances: Sequence[Model]
) -> None:
    statement = f"COPY {model._meta.db_table} ({', '.join(columns)}) FROM STDIN"
    # Django's cursor passes copy() on as it is, with the driver's own errors.
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for some in batches(instances):
            copy.write(_lines(columns, some))


def _lines(columns: Sequence[str], instances: Sequence[Model]) -> str:
    """
    Return the rows in COPY's text format, a column at a time: in most, all have the very same object.

    The driver, asked for one row after the other, takes twice as long.
    """
    values = zip(*map(itemgetter(*columns), map(vars, instances)), strict=True)
    return "\n".join(map("\t".join, zip(*map(_texts, values), strict=True))) + "\n"


def _texts(values: Sequence[Any]) -> Iterable[str]:
    if all(map(is_, values, repeat(values[0]))):
        return repeat(_text(values[0]), len(values))
    return map(_text, values)


def _text(value: Any) -> str:
    """Return a value as it stands in a line of COPY."""
    if isinstance(value, str):
        text = str(value)
        return text if text.isprintable() and "\\" not in text else text.translate(_ESCAPES)
    if value is None:
        return r"\N"
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, int | datetime):
        return str(value)
    raise TypeError(f"{value!r} is of a type that no column has.")


def insert_where_free(connection: BaseDatabaseWrapper, jobs: Sequence[Job]) -> set[UUID]:
    """Store those of the stamped jobs whose keys are free, and return their ids."""
    stored: set[UUID] = set()
    columns = columns_of(jobs)
    with connection.cursor() as cursor:
        for some in batches(jobs):
            cursor.execute(_insert_where_free(columns, connection), _values(columns, some))
            stored.update(pk for (pk,) in cursor.fetchall())
    return stored


def _insert_where_free(columns: Sequence[str], connection: BaseDatabaseWrapper) -> str:
    arrays = ", ".join(f"%({name})s::{_element(FIELDS[name], connection)}[]" for name in columns)
    return (
        f"INSERT INTO {Job._meta.db_table} ({', '.join(columns)})"
        f" SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING RETURNING id"
    )


def _values(columns: Sequence[str], jobs: Sequence[Job]) -> dict[str, list[Any]]:
    values = {name: [getattr(job, name) for job in jobs] for name in columns}
    # A word and an equal member of the enumeration are two types, of which the driver makes no list.
    return values | {"state": [str(job.state) for job in jobs]}


def _element(field: Any, connection: BaseDatabaseWrapper) -> str:
    """Return the field's type without its length: a cast would cut short what the column refuses."""
    name: str = field.db_type(connection)
    return name.partition("(")[0]
