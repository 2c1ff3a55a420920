"""The page to look at first: what is wrong and what to do, how deep and how old the queues are, what has died."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from ..lifecycle import operate
from ..lifecycle.figures import PATIENCE, Bar, bars
from ..lifecycle.warn import warnings
from ..models import DeadLetter
from ..store import store_for
from ..store.survey import Fleet
from ..store.watch import QueueStats
from .base import Mixin
from .charts import throughput
from .scope import for_all_tenants
from .words import age, duration

SHOWN_DEAD = 10


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with its name, and where to look closer; no address where that may not be seen."""

    label: str
    value: str
    address: str = ""
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue with its age and its cells: depth, workers, what it did so far."""

    stats: QueueStats
    address: str
    oldest: str
    cells: list[Tile]


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A dead letter in a line."""

    letter: DeadLetter
    address: str
    died: str


class OverviewMixin(Mixin):
    """The overview and its address, at the screen of queues: whoever may see that may see this."""

    database: str

    def get_urls(self) -> list[URLPattern]:
        """Add the address of the overview."""
        view = self.admin_site.admin_view(self.overview_view)
        return [path("overview/", view, name="django_workqueue_queue_overview"), *super().get_urls()]

    @for_all_tenants
    def overview_view(self, request: HttpRequest) -> TemplateResponse:
        """Show how the queue is at this moment."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = self.frame(request, _("Overview of the queue")) | self.look(lambda: self._overview(request))
        return TemplateResponse(request, "admin/django_workqueue/overview.html", context)

    def look(self, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what ``read`` does, and when; ``too_slow`` alone when a statement took longer than it may."""
        store = store_for(self.database)
        try:
            with store.looking(PATIENCE):
                return {"as_of": _clock(store.now()), **read()}
        except OperationalError as error:
            if not store.is_too_slow(error):
                raise
        return {"too_slow": True}

    def frame(self, request: HttpRequest, title: str) -> dict[str, Any]:
        """Return what a page of the admin needs beside its own content."""
        return {**self.admin_site.each_context(request), "title": title, "opts": self.opts, "media": self.media}

    def _overview(self, request: HttpRequest) -> dict[str, Any]:
        store = store_for(self.database)
        queues = operate.stats(database=self.database)
        now = store.now()
        hour = bars("1h", database=self.database)
        letters = store.latest_dead(SHOWN_DEAD) if _may_see(request, "deadletter") else []
        links = Links(request, self.admin_site.name)
        return {
            "findings": warnings(queues, database=self.database),
            "tiles": list(_tiles(queues, store.fleet(operate.silence()), hour, links)),
            "queues": [_queue_row(row, links) for row in queues],
            "chart": throughput(hour),
            "letters": [DeadRow(each, links.to("deadletter", each.pk), age(each.died_at, now)) for each in letters],
        }


class Links:
    """Addresses of other screens, empty where the user may not see one or the project has taken it away."""

    def __init__(self, request: HttpRequest, site: str) -> None:
        self._request = request
        self._site = site

    def to(self, model: str, pk: Any = None, **query: str) -> str:
        """Return the address of a list, filtered, or of one row."""
        if not _may_see(self._request, model):
            return ""
        name = f"admin:django_workqueue_{model}_{'changelist' if pk is None else 'change'}"
        try:
            address = reverse(name, args=[] if pk is None else [pk], current_app=self._site)
        except NoReverseMatch:
            return ""
        return f"{address}?{urlencode(query)}" if query else address

    def statistics(self, **query: str) -> str:
        """Return the address of the statistics of the last hour."""
        if not _may_see(self._request, "queue"):
            return ""
        address = reverse("admin:django_workqueue_queue_statistics", current_app=self._site)
        return f"{address}?{urlencode({'range': '1h', **query})}"


def _may_see(request: HttpRequest, model: str) -> bool:
    return request.user.has_perm(f"django_workqueue.view_{model}")


def _clock(moment: datetime) -> str:
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    return f"{local:%H:%M:%S %Z}".strip()


def _tiles(queues: Sequence[QueueStats], fleet: Fleet, hour: Sequence[Bar], links: Links) -> Iterator[Tile]:
    oldest = max((row.oldest_age_seconds for row in queues), default=0.0)
    tried = sum(bar.done + bar.failed for bar in hour)
    failed = sum(bar.failed for bar in hour)
    ready = links.to("job", state="ready")
    yield Tile(_("oldest ready job"), duration(timedelta(seconds=oldest)) if oldest else "-", ready)
    yield _total(_("ready"), "ready", queues, ready)
    yield _total(_("scheduled"), "scheduled", queues, links.to("job", state="scheduled"))
    yield _total(_("waiting for a retry"), "retrying", queues, links.to("job", state="scheduled"))
    yield _total(_("held by workers"), "leased", queues, links.to("job", state="leased"))
    yield _total(_("dead letters"), "dead", queues, links.to("deadletter"))
    yield Tile(
        _("done a minute, last hour"), f"{sum(bar.done for bar in hour) / max(1, len(hour)):.1f}", links.statistics()
    )
    yield Tile(
        _("failed attempts, last hour"), f"{failed / tried:.1%}" if tried else "-", links.statistics(order="failed")
    )
    yield Tile(_("live workers"), str(fleet.workers), links.to("worker"), is_bad=not fleet.workers)
    busy = _("%(running)d of %(slots)d") % {"running": fleet.running, "slots": fleet.slots}
    yield Tile(_("busy slots"), busy, links.to("worker"))


def _total(label: str, name: str, queues: Sequence[QueueStats], address: str) -> Tile:
    total = sum(getattr(row, name) for row in queues)
    is_capped = any(name in row.capped for row in queues)
    return Tile(label, f"{total}+" if is_capped else str(total), address)


def _queue_row(row: QueueStats, links: Links) -> QueueRow:
    states = ("ready", "scheduled", "blocked", "parked", "leased")
    cells = [Tile(name, _count(row, name), links.to("job", queue=row.queue, state=name)) for name in states]
    cells.append(Tile("dead", _count(row, "dead"), links.to("deadletter", queue=row.queue)))
    cells.append(Tile("workers", str(row.workers), links.to("worker")))
    cells.append(Tile("done", str(row.done), links.statistics(queue=row.queue)))
    cells.append(Tile("failed", str(row.failed), links.statistics(queue=row.queue, order="failed")))
    oldest = duration(timedelta(seconds=row.oldest_age_seconds)) if row.ready else "-"
    return QueueRow(row, links.to("queue", row.queue), oldest, cells)


def _count(row: QueueStats, name: str) -> str:
    return f"{getattr(row, name)}{'+' if name in row.capped else ''}"
