"""
Lists as PostgreSQL's binary arrays, for a worker's hot statements.

psycopg's own way takes several calls for each element: a third of what a claim of a hundred lanes takes in the worker.
Without these dumpers, as behind a pooler, they are lists like others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, repeat
from typing import Any, ClassVar
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from ..domain.rotation import LaneTurn

_HEAD = struct.Struct("!5i")
_SIZE = struct.Struct("!i").pack
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Ids(list[UUID]):
    """A ``uuid[]``."""


class Ranks(list[int]):
    """A ``smallint[]``."""


class Places(list[int]):
    """An ``integer[]``."""


class Moments(list[datetime]):
    """A ``timestamptz[]`` of times with a zone."""


class Names(list[str]):
    """A ``text[]``."""


class _ArrayDumper(Dumper):
    """Writes dimensions, no NULLs, the elements' type, their number and the first index; then each behind its size."""

    format = Format.BINARY
    element: ClassVar[int]

    def dump(self, obj: Any) -> bytes:
        """Return the array. An empty one has no dimension."""
        if not obj:
            return _HEAD.pack(0, 0, self.element, 0, 0)[:12]
        return _HEAD.pack(1, 0, self.element, len(obj), 1) + self.body(obj)

    def body(self, obj: Any) -> bytes:
        """Return the elements."""
        raise NotImplementedError


class _IdsDumper(_ArrayDumper):
    def body(self, obj: Ids) -> bytes:
        size = _SIZE(16)
        return size + size.join([each.bytes for each in obj])


class _NamesDumper(_ArrayDumper):
    def body(self, obj: Names) -> bytes:
        texts = [each.encode() for each in obj]
        return b"".join(chain.from_iterable(zip(map(_SIZE, map(len, texts)), texts, strict=True)))


class _NumbersDumper(_ArrayDumper):
    code: ClassVar[str]

    def body(self, obj: Iterable[Any]) -> bytes:
        numbers = self.numbers(obj)
        sizes = repeat(struct.calcsize(f"!{self.code}"), len(numbers))
        return struct.pack(f"!{f'i{self.code}' * len(numbers)}", *chain.from_iterable(zip(sizes, numbers, strict=True)))

    def numbers(self, obj: Any) -> list[int]:
        """Return the elements as numbers."""
        numbers: list[int] = obj
        return numbers


class _RanksDumper(_NumbersDumper):
    code = "h"


class _PlacesDumper(_NumbersDumper):
    code = "i"


class _MomentsDumper(_NumbersDumper):
    code = "q"

    def numbers(self, obj: Moments) -> list[int]:
        return [(each - _EPOCH) // _MICROSECOND for each in obj]


_DUMPERS: dict[type[list[Any]], tuple[type[_ArrayDumper], str]] = {
    Ids: (_IdsDumper, "uuid"),
    Ranks: (_RanksDumper, "int2"),
    Places: (_PlacesDumper, "int4"),
    Moments: (_MomentsDumper, "timestamptz"),
    Names: (_NamesDumper, "text"),
}
for _dumper, _name in _DUMPERS.values():
    _dumper.element = psycopg.adapters.types[_name].oid
    _dumper.oid = psycopg.adapters.types[_name].array_oid


def register(cursor: psycopg.Cursor[Any]) -> None:
    """Have ``cursor`` send these lists so."""
    for kind, (dumper, _) in _DUMPERS.items():
        cursor.adapters.register_dumper(kind, dumper)


# Before every time that a job can carry; "-infinity" would not come back through Python.
_BEGINNING = datetime(1, 1, 2, tzinfo=UTC)


def segments(lanes: Sequence[LaneTurn]) -> dict[str, Any]:
    """Flatten the lanes' segments into arrays, with the first and last index (from 1) of each lane's own."""
    parts = [segment for lane in lanes for segment in lane.segments]
    lasts = list(accumulate(len(lane.segments) for lane in lanes))
    ranks, afters, ends, after_ids = zip(*parts, strict=True) if parts else ((), (), (), ())
    return {
        "tenants": Names(lane.tenant for lane in lanes),
        "firsts": Places(last + 1 for last in [0, *lasts[:-1]]),
        "lasts": Places(lasts),
        "ranks": Ranks(ranks),
        "afters": Moments(after or _BEGINNING for after in afters),
        "after_ids": Ids(after_ids),
        "ends": Ranks(ends),
    }
