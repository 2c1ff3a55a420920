"""The page of statistics: how it went over an hour or a week, by queue and task, from the rollups alone."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..lifecycle.figures import RANGES, Figures, QueueFigures, TaskFigures, Times, figures
from ..store.survey import Passed
from .charts import Chart, tally, throughput
from .figures_file import table
from .overview import OverviewMixin
from .scope import for_all_tenants
from .words import duration

DEFAULT_RANGE = "24h"
SHARES = (0.5, 0.95, 0.99)
SHOWN = 50
"""Tasks on one page. All that are told apart are in the file."""
Order = Callable[[TaskFigures], Any]
ORDERS: dict[str, tuple[Any, Order]] = {
    "done": (gettext_lazy("Done"), lambda each: each.passed.done),
    "failed": (gettext_lazy("Failed attempts"), lambda each: each.passed.failed),
    "time": (gettext_lazy("Time, about"), lambda each: each.runs.total),
}
"""By what the tasks can be ordered, the most first."""


@dataclass(frozen=True, slots=True)
class Row:
    """How a queue, or a task in a queue, went: what happened, how long all took, and the address of its own page."""

    queue: str
    task: str
    passed: Passed
    time: str
    address: str
    waits: list[str]
    runs: list[str]


class FiguresMixin(OverviewMixin):
    """The statistics and their address, beside the overview."""

    def get_urls(self) -> list[URLPattern]:
        """Add the addresses of the statistics."""
        site = self.admin_site
        return [
            path("statistics/", site.admin_view(self.statistics_view), name="django_workqueue_queue_statistics"),
            path("statistics.csv", site.admin_view(self.csv_view), name="django_workqueue_queue_csv"),
            *super().get_urls(),
        ]

    @for_all_tenants
    def statistics_view(self, request: HttpRequest) -> TemplateResponse:
        """Show how it went, of everything or of one queue or task."""
        asked, period = self._asked(request)
        order = request.GET.get("order", "")
        order = order if order in ORDERS else next(iter(ORDERS))
        context = self.frame(request, _("Statistics"))
        context |= {"ranges": list(RANGES), "period": period, "order": order, **asked}
        context["heads"] = [f"{share:.0%}" for share in SHARES]
        context["orders"] = [(name, label, _query(period, order=name, **asked)) for name, (label, _) in ORDERS.items()]
        context["file"] = f"{self._csv_address()}{_query(period, **asked)}"
        context |= self.look(lambda: _shown(figures(period, **asked, database=self.database), period, order))
        return TemplateResponse(request, "admin/django_workqueue/statistics.html", context)

    @for_all_tenants
    def csv_view(self, request: HttpRequest) -> HttpResponse:
        """Send the same figures of each queue and task as a file."""
        asked, period = self._asked(request)
        found = self.look(lambda: {"figures": figures(period, **asked, database=self.database)})
        if "too_slow" in found:
            return HttpResponse(_("The database took too long. Ask for a shorter time."), status=503)
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="workqueue-{period}.csv"'
        csv.writer(response).writerows(table(found["figures"]))
        return response

    def _asked(self, request: HttpRequest) -> tuple[dict[str, str], str]:
        """Return which queue and task are asked for, and which range; refuse who may not see, and what cannot be."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        asked = {name: request.GET.get(name, "").strip() for name in ("range", "queue", "task")}
        if any("\x00" in text for text in asked.values()):
            # PostgreSQL has no such character, and would fail where SQLite finds nothing.
            raise Http404
        period = asked.pop("range") or DEFAULT_RANGE
        if period not in RANGES:
            raise Http404(
                _("The range is %(range)s. It can be: %(ranges)s.") % {"range": period, "ranges": list(RANGES)}
            )
        return asked, period

    def _csv_address(self) -> str:
        return reverse("admin:django_workqueue_queue_csv", current_app=self.admin_site.name)


def _query(period: str, **more: str) -> str:
    return "?" + urlencode({"range": period} | {name: value for name, value in more.items() if value})


def _shown(found: Figures, period: str, order: str) -> dict[str, Any]:
    tasks = sorted(found.tasks, key=ORDERS[order][1], reverse=True)[:SHOWN]
    return {
        "charts": list(_charts(found)),
        "queues": [_row(period, each, queue) for queue, each in found.queues.items()],
        "tasks": [_row(period, each, each.queue, each.task) for each in tasks],
        "is_partial": found.is_partial,
        "left_out": len(found.tasks) - len(tasks),
    }


def _charts(found: Figures) -> Iterator[Chart]:
    yield throughput(found.bars)
    yield tally("waits", _("How long jobs waited"), _spread(found.waits), (_("Up to"), _("Jobs")))
    yield tally("runs", _("How long they ran"), _spread(found.runs), (_("Up to"), _("Jobs")))
    attempts = [(str(number), count) for number, count in found.attempts.items()]
    yield tally("attempts", _("Attempts that the newest jobs took"), attempts, (_("Attempts"), _("Jobs")))


def _spread(times: Times) -> Sequence[tuple[str, int]]:
    """Return the counts with their upper ends, from the first to the last that is not empty."""
    filled = [place for place, count in enumerate(times.counts) if count]
    if not filled:
        return []
    return [(_upto(place), times.counts[place]) for place in range(filled[0], filled[-1] + 1)]


def _upto(place: int) -> str:
    return duration(timedelta(milliseconds=2**place))


def _row(period: str, of: QueueFigures | TaskFigures, queue: str, task: str = "") -> Row:
    address = _query(period, queue=queue, task=task)
    total = duration(of.runs.total)
    return Row(queue, task, of.passed, total, address, _percentiles(of.waits), _percentiles(of.runs))


def _percentiles(times: Times) -> list[str]:
    found = [times.percentile(share) for share in SHARES]
    return ["-" if each is None else duration(each) for each in found]
