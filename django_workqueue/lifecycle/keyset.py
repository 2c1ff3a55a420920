"""Places in an ordered table: a page or batch begins at one by an index descent; OFFSET would count rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q, QuerySet
from django.utils import timezone

Position = tuple[Any, ...]
"""The values that a row has in the columns of a keyset."""

# Neither a date nor a number holds it, and only the last column may be text.
_SEPARATOR = "~"


@dataclass(frozen=True, slots=True)
class Keyset:
    """
    The one or two columns that put the rows of a table into a total order, served by an index.

    ``columns`` are written as for ``order_by``, all of them ascending or all descending.
    """

    columns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns without their direction."""
        return tuple(column.removeprefix("-") for column in self.columns)

    def after(self, rows: QuerySet[Any], position: Position | None) -> QuerySet[Any]:
        """Return those of ``rows`` that come behind ``position``; all of them when it is None."""
        return rows if position is None else rows.filter(self._side(position, behind=True))

    def until(self, rows: QuerySet[Any], position: Position | None) -> QuerySet[Any]:
        """Return those of ``rows`` that come before ``position`` or lie on it; all when it is None."""
        return rows if position is None else rows.filter(self._side(position, behind=False))

    def batches(self, rows: QuerySet[Any], size: int) -> Iterator[list[Any]]:
        """Yield ``rows`` in order, ``size`` at a time; rows may be changed or deleted on the way."""
        position = None
        ordered = rows.order_by(*self.columns)
        while batch := list(self.after(ordered, position)[:size]):
            yield batch
            position = self.position(batch[-1])

    def position(self, row: Model) -> Position:
        """Return where ``row`` stands."""
        return tuple(getattr(row, name) for name in self.names)

    def write(self, model: type[Model], position: Position) -> str:
        """Return ``position`` as text for an address."""
        row = model(**dict(zip(self.names, position, strict=True)))
        return _SEPARATOR.join(_field(model, name).value_to_string(row) for name in self.names)

    def read(self, model: type[Model], text: str) -> Position:
        """Return the position that ``text`` writes. Raises ValueError for any other text."""
        words = text.split(_SEPARATOR, len(self.columns) - 1)
        return tuple(_value(model, name, word) for name, word in zip(self.names, words, strict=True))

    def _side(self, position: Position, *, behind: bool) -> Q:
        descending = self.columns[0].startswith("-")
        side = "lt" if descending == behind else "gt"
        first, last = self.names[0], self.names[-1]
        tie = Q((f"{last}__{side}" if behind else f"{last}__{side}e", position[-1]))
        if first == last:
            return tie
        # The range on the index is read off the first condition alone; the OR by itself would scan.
        return Q((f"{first}__{side}e", position[0])) & (Q((f"{first}__{side}", position[0])) | tie)


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    return cast("Field[Any, Any]", model._meta.get_field(name))


def _value(model: type[Model], name: str, word: str) -> Any:
    try:
        value = _field(model, name).to_python(word)
    except ValidationError as error:
        raise ValueError(f"{word!r} is no value of {name!r}.") from error
    if isinstance(value, datetime) and timezone.is_naive(value) == settings.USE_TZ:
        raise ValueError(f"{word!r} does not say its time zone as the stored times do.")
    return value
