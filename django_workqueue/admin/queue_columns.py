"""How each queue stands and how its last hour went, for all rows of a page by the same few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..conf import get_settings
from ..lifecycle import operate
from ..lifecycle.figures import QueueFigures, Times, by_queue
from ..models import Queue
from ..store.survey import Passed
from ..store.watch import QueueStats
from .changelist import BoundedChangeList
from .figures import FiguresMixin
from .overview import Links
from .words import age, coloured, duration, read_at

HOUR = "1h"
MINUTES = 60
IDLE = QueueFigures(Passed(0, 0, 0), Times(), Times())


@dataclass(frozen=True, slots=True)
class Board:
    """One queue at this moment and in the last hour, with the addresses of what may be looked at closer."""

    stats: QueueStats
    hour: QueueFigures
    links: Links


class QueueChangeList(BoundedChangeList):
    """The list of queues, each with its board."""

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and the boards of its rows."""
        super().get_results(request)
        screen: Any = self.model_admin
        screen.add_boards(request, self.result_list)


def _column(description: Any, show: Callable[[Any, Board], Any]) -> Callable[[Any, Any], Any]:
    """Return a column that is shown from the board; a dash where reading it took too long."""

    @admin.display(description=description)
    def column(_admin: Any, row: Any) -> Any:
        return "-" if row.board is None else show(row, row.board)

    return column


def _counted(name: str, row: Queue, board: Board) -> str:
    """Return a count, up to a cap, that leads to what it counts."""
    count = f"{getattr(board.stats, name)}{'+' if name in board.stats.capped else ''}"
    query = {"queue": row.name} | ({} if name == "dead" else {"state": name})
    address = board.links.to("deadletter" if name == "dead" else "job", **query)
    return format_html('<a href="{}">{}</a>', address, count) if address else count


def _count(name: str, description: Any) -> Callable[[Any, Any], Any]:
    return _column(description, lambda row, board: _counted(name, row, board))


def _percentiles(times: Times) -> str:
    found = [times.percentile(share) for share in (0.5, 0.95)]
    return ", ".join("-" if each is None else duration(each) for each in found)


def _limits(row: Queue) -> str:
    limits = get_settings().queue(row.name).limits
    told = [
        _("%(count)d at once") % {"count": limits.concurrency} if limits.concurrency is not None else "",
        _("%(count)d a tenant") % {"count": limits.tenant_concurrency} if limits.tenant_concurrency is not None else "",
        _("%(count)d in %(period)s") % {"count": limits.rate.count, "period": duration(limits.rate.period)}
        if limits.rate
        else "",
    ]
    return ", ".join(filter(None, told)) or "-"


class QueueColumnsMixin(FiguresMixin):
    """The columns of the screen of queues."""

    ready = _count("ready", gettext_lazy("ready"))
    scheduled = _count("scheduled", gettext_lazy("scheduled"))
    blocked = _count("blocked", gettext_lazy("blocked"))
    parked = _count("parked", gettext_lazy("parked"))
    held = _count("leased", gettext_lazy("held"))
    dead_letters = _count("dead", gettext_lazy("dead"))
    withheld = _column(
        gettext_lazy("blocked, parked"),
        lambda row, board: format_html("{}, {}", _counted("blocked", row, board), _counted("parked", row, board)),
    )
    oldest = _column(
        gettext_lazy("oldest ready"),
        lambda _row, board: duration(timedelta(seconds=board.stats.oldest_age_seconds)) if board.stats.ready else "-",
    )
    workers = _column(gettext_lazy("workers"), lambda _row, board: str(board.stats.workers))
    pace = _column(gettext_lazy("done/min"), lambda _row, board: f"{board.hour.passed.done / MINUTES:.1f}")
    failed_lately = _column(gettext_lazy("failed"), lambda _row, board: str(board.hour.passed.failed))
    waited = _column(gettext_lazy("waited 50%, 95%"), lambda _row, board: _percentiles(board.hour.waits))
    ran = _column(gettext_lazy("ran 50%, 95%"), lambda _row, board: _percentiles(board.hour.runs))

    def add_boards(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        """Read the boards of all queues, and give each row its own; None to all when that took too long."""
        given = {"database": self.database}
        found = self.look(lambda: {"stats": operate.stats(**given), "hour": by_queue(HOUR, **given)})
        if "too_slow" in found:
            told = _("The database took too long, so that nothing was counted. Try again later.")
            self.message_user(request, told, messages.WARNING)
        stats = {each.queue: each for each in found.get("stats", ())}
        links = Links(request, self.admin_site.name)
        for row in rows:
            seen = stats.get(row.name)
            row.board = Board(seen, found["hour"].get(row.name, IDLE), links) if seen else None

    @admin.display(description=gettext_lazy("state"))
    def standing(self, row: Any) -> str:
        """Show whether workers may claim from the queue and do, and who says since when that they may not."""
        if row.paused_at:
            words = _("Paused by %(name)s") % {"name": row.paused_by or "?"}
            return format_html("{} {}", coloured("idle", words), age(row.paused_at, read_at(row)))
        if row.board is not None and row.board.stats.unserved:
            return coloured("bad", _("No worker"))
        return coloured("good", _("Open"))

    @admin.display(description=gettext_lazy("limits"))
    def limits(self, row: Queue) -> str:
        """Show what bounds the claims of the queue, as the settings say."""
        return _limits(row)

    @admin.display(description=gettext_lazy("by task and over time"))
    def statistics(self, row: Queue) -> str:
        """Show a link to the statistics of the queue."""
        name = "admin:django_workqueue_queue_statistics"
        url = reverse(name, current_app=self.admin_site.name)
        return format_html('<a href="{}?{}">{}</a>', url, urlencode({"queue": row.name}), _("its statistics"))
