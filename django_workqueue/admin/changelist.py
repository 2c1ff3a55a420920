"""The list page that reads a bounded number of rows, however large its table is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from ..lifecycle.keyset import Keyset, Position
from .scope import scope_of
from .search import Reach

if TYPE_CHECKING:
    from .base import ReadOnlyMixin

AFTER, FROM = "after", "from"
"""Parameters of an address: what row the page begins behind, and what row the window begins behind."""
COUNT_LIMIT = 1000
WINDOW = 100_000
"""Rows that a filter without an index looks through before it asks whether to look further back."""


class CappedCount(int):
    """A count that was given up at COUNT_LIMIT. Django calculates with it and prints it as "1000+"."""

    def __str__(self) -> str:
        # Digits are grouped from the right, where a plus sign would count as one of them.
        return f">{int(self)}" if settings.USE_THOUSAND_SEPARATOR else f"{int(self)}+"


def capped_count(rows: QuerySet[Any]) -> int:
    """Return the number of ``rows``, or a CappedCount when there are more than COUNT_LIMIT."""
    # In no order: those that were selected are found by their keys then, not along the list.
    found = len(rows.order_by().values_list("pk")[: COUNT_LIMIT + 1])
    return found if found <= COUNT_LIMIT else CappedCount(COUNT_LIMIT)


class BoundedChangeList(ChangeList):
    """
    A list in the order of its admin's keyset, one page after the other.

    A condition that no index serves could look through the whole table for one row. Where the admin says so,
    it looks at a window of the newest WINDOW rows, says that it did, and offers the window behind.
    """

    model_admin: ReadOnlyMixin
    keyset: Keyset
    window = WINDOW
    everything: QuerySet[Any]
    """Every row that the filters and the search leave, on all pages and in all windows. Not to be read as a whole."""
    older: str | None = None
    """Query string of the page behind this one."""
    further: str | None = None
    """Query string of the window behind this one."""
    newest: str | None = None
    """Query string of the first page; None on it."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """Return every row that the filters and the search leave, in the window where one is needed."""
        self._take_positions(request)
        rows = self.everything = super().get_queryset(request, exclude_parameters)
        start = self._position(self.window_start)
        rows = self.keyset.after(rows, start)
        if self._needs_window(request):
            floor = self._floor(start)
            self.further = self.get_query_string({FROM: self._text(floor)}) if floor else None
            rows = self.keyset.until(rows, floor)
        return rows

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Return the one order that the index serves; ``?o=`` in an address changes nothing."""
        return list(self.keyset.columns)

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and count up to a limit."""
        rows = self.keyset.after(self.queryset, self._position(self.page_start))
        page = list(self.model_admin.listed(rows)[: self.list_per_page + 1])
        self.result_list = page[: self.list_per_page]
        self.result_count = capped_count(self.queryset)
        self.older = self._link_behind(self.result_list[-1]) if len(page) > len(self.result_list) else None
        self.newest = self.get_query_string() if self.page_start or self.window_start else None
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = self.multi_page = False

    def _take_positions(self, request: HttpRequest) -> None:
        """Read the positions, and hide them from Django, which would take them for filters."""
        self.keyset = self.model_admin.keyset
        self.page_start, self.window_start = (request.GET.get(name, "") for name in (AFTER, FROM))
        for name in (AFTER, FROM):
            self.params.pop(name, None)
            self.filter_params.pop(name, None)
        if any("\x00" in value for values in self.filter_params.values() for value in values):
            # PostgreSQL has no such character, and would fail where SQLite finds nothing.
            raise IncorrectLookupParameters("A parameter holds a NUL character.")

    def _needs_window(self, request: HttpRequest) -> bool:
        if not self.model_admin.windowed:
            return False
        reaches = self.model_admin.search_reaches(self.query)
        reaches |= {getattr(spec, "reach", Reach.ALL) for spec in self.filter_specs if spec.used_parameters}
        # No index over jobs begins with the tenant: whose last ones are old would have the whole table looked through.
        reaches |= {Reach.ALL} if scope_of(request).is_limited else set()
        return Reach.ALL in reaches and Reach.FEW not in reaches

    def _floor(self, start: Position | None) -> Position | None:
        """Return the last position of the window; None when the table ends before it does."""
        # Of the whole table: what the user may not see has to be stepped over too.
        table = self.model._default_manager.using(self.model_admin.database)
        rows = self.keyset.after(table, start).order_by(*self.keyset.columns)
        ends = rows.values_list(*self.keyset.names)[self.window - 1 : self.window]
        return next(iter(ends), None)

    def _position(self, text: str) -> Position | None:
        try:
            return self.keyset.read(self.model, text) if text else None
        except ValueError as error:
            raise IncorrectLookupParameters(error) from error

    def _text(self, position: Position) -> str:
        return self.keyset.write(self.model, position)

    def _link_behind(self, row: Model) -> str:
        return self.get_query_string({AFTER: self._text(self.keyset.position(row)), FROM: self.window_start or None})
