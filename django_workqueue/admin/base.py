"""What every screen has in common: the queue's own database, bounded lists, and nothing that edits a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..domain.scope import Scope
from ..lifecycle.keyset import Keyset
from .changelist import BoundedChangeList
from .looking import LookingMixin
from .scope import scope_of
from .search import Reach

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    Mixin = admin.ModelAdmin[Any]
else:
    # The screens are mixins, so that a project may put them before a ModelAdmin of its own or of a theme.
    ModelAdmin = admin.ModelAdmin
    Mixin = object

Fieldset = tuple[Any, Any]
"""A heading, which may be None, and its options."""


class ReadOnlyMixin(LookingMixin, Mixin):
    """
    A screen that only looks. Reading locks and writes nothing.

    It reads the database that ``WORKQUEUE["DATABASE"]`` names, whatever a router would answer: a replica lags
    behind, and would show as waiting what has long run.
    """

    keyset: ClassVar[Keyset]
    """The order of the list, newest first."""
    windowed: ClassVar[bool] = False
    """Whether the table may be too large for a filter without an index to look through all of it."""
    refreshes: ClassVar[bool] = False
    """Whether the page of a row may read itself again: it shows what changes by itself, and is not edited."""
    is_shared: ClassVar[bool] = False
    """Whether the rows are those of all tenants: who may see some may look, and changes nothing."""
    totals: ClassVar[frozenset[str]] = frozenset()
    """Columns that add up the jobs of all tenants, and are not for who may see some."""
    empty_text: ClassVar[Any] = _("There is nothing here yet.")
    """What the list says when nothing is in it, and what to do about it."""

    list_per_page = 100
    show_facets = ShowFacets.NEVER
    show_full_result_count = False
    sortable_by = ()

    class Media:
        css = {"all": ("django_workqueue/admin.css", "django_workqueue/jobs.css")}
        js = ("django_workqueue/copy.js",)

    @property
    def database(self) -> str:
        """The alias of the database that holds the queue."""
        return get_settings().database

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows, each with ``read_at``: an age is told by the clock that stamped the row."""
        rows: QuerySet[Any] = super().get_queryset(request).using(self.database).annotate(read_at=Now())
        return self.within(scope_of(request), rows)

    def within(self, scope: Scope, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return those of ``rows`` that are there for ``scope``. Without tenants, a subclass says which those are."""
        return scope.share(rows) if self.is_shared else scope.apply(rows)

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns that the user may see."""
        return self._told(request, super().get_list_display(request))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what the user may see of a row."""
        return self._told(request, super().get_fields(request, obj))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the layout of what the user may see of a row."""
        layout = super().get_fieldsets(request, obj)
        told = [(head, {**rest, "fields": self._told(request, rest["fields"])}) for head, rest in layout]
        return [(head, rest) for head, rest in told if rest["fields"]]

    def _told(self, request: HttpRequest, names: Any) -> list[Any]:
        return [name for name in names if not scope_of(request).is_limited or name not in self.totals]

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the order of the keyset."""
        return self.keyset.columns

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BoundedChangeList]:
        """Return the list that reads a bounded number of rows."""
        return BoundedChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row, or None. PostgreSQL cannot be asked for a text that holds a NUL character."""
        return None if "\x00" in object_id else super().get_object(request, object_id, from_field)

    def listed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of one page with what only the list shows."""
        return rows

    def address_of(self, page: str, *args: Any) -> str:
        """Return the address of a page of this screen."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow what a filter of the list asks for; any other lookup in an address could scan the table."""
        names = (_filter_name(item) for item in self.list_filter)
        return any(lookup == name or lookup.startswith(f"{name}__") for name in names)

    def search_reaches(self, text: str) -> set[Reach]:
        """Return what searching for ``text`` makes the database look at."""
        return {Reach.ALL} if text else set()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the row, and what ``page_context`` adds; a form for a new one as it is."""
        row = context["original"]
        more = {} if row is None else self.page_context(request, row)
        return super().render_change_form(request, context | more, *args, **kwargs)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Return what the page of a row shows beside its columns."""
        return {}

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: rows come from the queue itself."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: a row edited under a worker would break what the lease promises."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: no accepted job is lost, and this is how one would be."""
        return False


def _filter_name(item: Any) -> str:
    if isinstance(item, type):
        return str(getattr(item, "parameter_name", ""))
    return str(item[0]) if isinstance(item, tuple | list) else str(item)
