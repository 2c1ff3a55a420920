"""Export: jobs as lines of JSON, read in batches, without what ``WORKQUEUE["MASK"]`` hides. Part of ``operate``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from ..domain.encoding import decode
from ..domain.masking import Veil
from ..models.base import JobColumns
from .keyset import Keyset

MOST_EXPORTED = 100_000
"""Jobs in one export, unless another number is given."""
BATCH = 200
"""Jobs in memory at a time: each may have large arguments."""

_TEXTS = frozenset({"last_error", "progress", "note"})


def export(rows: QuerySet[Any], keyset: Keyset, *, most: int = MOST_EXPORTED) -> Iterator[str]:
    """
    Yield one line of JSON for each of up to ``most`` of ``rows``, in the order of ``keyset``.

    Rows are jobs, finished jobs or dead letters. They are read in batches, each by its place: nothing is held open
    between them, and a job that moves meanwhile may be told in neither place. Where there are more, the last line is
    ``{"left_out": true}``.
    """
    found = chain.from_iterable(keyset.batches(rows, BATCH))
    for row in islice(found, most):
        yield json.dumps(as_dict(row)) + "\n"
    if next(found, None) is not None:
        yield json.dumps({"left_out": True}) + "\n"


def as_dict(row: JobColumns, veil: Veil | None = None) -> dict[str, Any]:
    """Return every column of a job as JSON can tell it: what is stored as JSON as what it says, times as ISO 8601."""
    veil = veil or Veil.of(row)
    return {field.attname: _value(row, field.attname, veil) for field in row._meta.concrete_fields}


def _value(row: JobColumns, name: str, veil: Veil) -> Any:
    if name in veil.columns:
        return _told(veil.columns[name])
    value = getattr(row, name)
    if name in _TEXTS and isinstance(value, str):
        return veil.text(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _told(text: str) -> Any:
    """Return what JSON text says, or the text where it is none."""
    try:
        return decode(text, object)
    except ValueError:
        return text
