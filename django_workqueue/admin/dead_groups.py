"""The page of dead letters by cause: what died, how often, since when."""

from __future__ import annotations

from typing import NamedTuple

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from ..lifecycle.dead_groups import COUNTED, DeadGroup, GroupPage, dead_groups, deaths_by_day
from .changelist import CappedCount
from .charts import Box, sparkline
from .matching import MatchingMixin
from .revealing import veil_of
from .scope import scope_of
from .words import age, bounded, line

MOST_PAGES = 40
"""Pages of groups; those behind have not grown for long."""


class GroupRow(NamedTuple):
    """One group as the page shows it."""

    task: str
    error: str
    sample: str
    """The whole last error of the one that died last."""
    size: int
    first: str
    last: str
    deaths: str
    """How many died each day, in words."""
    boxes: list[Box]
    """The same as a picture."""
    address: str
    """Of the list of its letters."""
    operations: list[tuple[str, str]]
    """What the user may do to the whole group: label and address."""


class DeadGroupsMixin(MatchingMixin):
    """Adds the page of groups to the screen of dead letters."""

    change_list_template = "admin/django_workqueue/deadletter/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the page of groups."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_groups"
        return [path("groups/", self.admin_site.admin_view(self.groups_view), name=name), *super().get_urls()]

    def groups_view(self, request: HttpRequest) -> HttpResponse:
        """Show one page of groups, or say that it would take too long."""
        return self.looked_at(request, lambda: self._groups_page(request))

    def _groups_page(self, request: HttpRequest) -> HttpResponse:
        """Show one page of groups, those that grew last first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        number = _page_number(request.GET.get("page", ""))
        scope = scope_of(request)
        page = dead_groups(page=number, tenant=scope.tenants, database=self.database)
        # The index has the letters of all tenants together: of some, the days are not told.
        deaths = {} if scope.is_limited else deaths_by_day(page, database=self.database)
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": _("Dead letters by cause"),
            "opts": self.opts,
            "media": self.media,
            "rows": [self._group_row(request, group, page, deaths.get(group.fingerprint, [])) for group in page.groups],
            "older": number + 1 if page.has_more and number + 1 < MOST_PAGES else None,
            "newest": bool(number),
            "list_address": self._letters_address(),
            "empty_text": self.empty_text,
        }
        return TemplateResponse(request, "admin/django_workqueue/deadletter/groups.html", context)

    def _group_row(self, request: HttpRequest, group: DeadGroup, page: GroupPage, deaths: list[int]) -> GroupRow:
        query = urlencode({"fingerprint": group.fingerprint})
        return GroupRow(
            task=group.task,
            error=line(group.error),
            sample=bounded(veil_of(group.sample).text(group.sample.last_error)),
            size=group.size if group.size <= COUNTED else CappedCount(COUNTED),
            first=age(group.first_died_at, page.read_at),
            last=age(group.last_died_at, page.read_at),
            deaths=_("Died each day, oldest first: %(counts)s") % {"counts": ", ".join(map(str, deaths))},
            boxes=sparkline(deaths),
            address=f"{self._letters_address()}?{query}",
            operations=[(each.label, address) for each, address in self.matching_links(request, query)],
        )

    def _letters_address(self) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return reverse(name, current_app=self.admin_site.name)


def _page_number(text: str) -> int:
    """Return the number of a page; 0 for what is none. Each page walks all groups again, so there is a last one."""
    return min(int(text), MOST_PAGES - 1) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
