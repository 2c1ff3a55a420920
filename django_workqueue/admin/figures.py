"""The page of statistics: how it went over an hour or a week, by queue and task, from the rollups alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from ..lifecycle.figures import RANGES, Figures, TaskFigures, Times, figures
from .charts import Chart, tally, throughput
from .overview import OverviewMixin
from .words import duration

DEFAULT_RANGE = "24h"
SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task in one queue: what happened, how long it waited and ran, and the address of its own page."""

    figures: TaskFigures
    address: str
    waits: list[str]
    runs: list[str]


class FiguresMixin(OverviewMixin):
    """The statistics and their address, beside the overview."""

    def get_urls(self) -> list[URLPattern]:
        """Add the address of the statistics."""
        view = self.admin_site.admin_view(self.statistics_view)
        return [path("statistics/", view, name="django_workqueue_queue_statistics"), *super().get_urls()]

    def statistics_view(self, request: HttpRequest) -> TemplateResponse:
        """Show how it went, of everything or of one queue or task."""
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
        context = self.frame(request, _("Statistics"))
        context |= {"ranges": list(RANGES), "period": period, **asked}
        context |= self.look(lambda: _shown(figures(period, **asked, database=self.database), period))
        return TemplateResponse(request, "admin/django_workqueue/statistics.html", context)


def _shown(found: Figures, period: str) -> dict[str, Any]:
    return {
        "charts": list(_charts(found)),
        "tasks": [_row(each, period) for each in found.tasks],
        "is_partial": found.is_partial,
        "heads": [f"{share:.0%}" for share in SHARES],
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


def _row(task: TaskFigures, period: str) -> TaskRow:
    query = urlencode({"range": period, "queue": task.queue, "task": task.task})
    return TaskRow(task, f"?{query}", _percentiles(task.waits), _percentiles(task.runs))


def _percentiles(times: Times) -> list[str]:
    found = [times.percentile(share) for share in SHARES]
    return ["-" if each is None else duration(each) for each in found]
