"""Charts as plain geometry: whole numbers for the attributes of SVG, where neither style nor script is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from ..lifecycle.figures import Bar

WIDTH, HEIGHT = 960, 160
SPARK_WIDTH, SPARK_HEIGHT = 84, 20
GAP = 2


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle. The numbers are texts, so that no locale groups their digits."""

    kind: str
    x: str
    y: str
    width: str
    height: str
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and what a table says beside it."""

    name: str
    title: str
    description: str
    boxes: list[Box]
    heads: Sequence[str]
    rows: Sequence[tuple[str, ...]]
    most: int
    first: str
    last: str
    width: str = str(WIDTH)
    height: str = str(HEIGHT)


def throughput(bars: Sequence[Bar]) -> Chart:
    """Return successes and failed attempts over time, one upon the other."""
    most = max((bar.done + bar.failed for bar in bars), default=0)
    with_date = bool(bars) and bars[0].start.date() != bars[-1].start.date()
    labels = [_moment(bar.start, with_date=with_date) for bar in bars]
    grid = _Grid(len(bars), most)
    boxes = [box for place, bar in enumerate(bars) for box in _column(grid, place, bar, labels[place])]
    rows = [
        (label, str(bar.done), str(bar.failed), str(bar.dead))
        for label, bar in zip(labels, bars, strict=True)
        if bar.done or bar.failed or bar.dead
    ]
    done, failed, dead = (sum(getattr(bar, name) for bar in bars) for name in ("done", "failed", "dead"))
    return Chart(
        "throughput",
        _("Throughput and failures"),
        _("%(done)d jobs done, %(failed)d attempts failed, %(dead)d jobs died.")
        % {"done": done, "failed": failed, "dead": dead},
        boxes,
        (_("From"), _("Done"), _("Failed attempts"), _("Died")),
        rows[::-1],
        most,
        labels[0] if labels else "",
        labels[-1] if labels else "",
    )


def tally(name: str, title: str, counts: Sequence[tuple[str, int]], heads: tuple[str, str]) -> Chart:
    """Return one bar for each label."""
    most = max((count for _label, count in counts), default=0)
    total = sum(count for _label, count in counts)
    grid = _Grid(len(counts), most)
    boxes = [
        grid.box("done", place, count, title=f"{label}: {count}")
        for place, (label, count) in enumerate(counts)
        if count
    ]
    rows = [(label, str(count)) for label, count in counts if count]
    ends = (counts[0][0], counts[-1][0]) if counts else ("", "")
    return Chart(name, title, _("%(count)d jobs.") % {"count": total}, boxes, heads, rows, most, *ends)


def sparkline(counts: Sequence[int]) -> list[Box]:
    """Return one bar for each count, in a picture as small as a word."""
    grid = _Grid(len(counts), max(counts, default=0), width=SPARK_WIDTH, height=SPARK_HEIGHT, gap=1)
    return [grid.box("failed", place, count, title="") for place, count in enumerate(counts) if count]


@dataclass(frozen=True, slots=True)
class _Grid:
    """How wide a column is and what the full height stands for."""

    columns: int
    most: int
    width: int = WIDTH
    height: int = HEIGHT
    gap: int = GAP

    def box(self, kind: str, place: int, count: int, *, title: str, below: int = 0) -> Box:
        """Return the box of ``count``, that lies upon those of ``below``."""
        left, right = (self.width * edge // self.columns for edge in (place, place + 1))
        bottom, top = (self.height - self.height * edge // self.most for edge in (below, below + count))
        # A single failure among thousands of successes must still be seen.
        height = max(2, bottom - top)
        width = max(1, right - left - self.gap)
        return Box(kind, str(left), str(max(0, bottom - height)), str(width), str(height), title)


def _column(grid: _Grid, place: int, bar: Bar, label: str) -> list[Box]:
    title = _("%(from)s: %(done)d done, %(failed)d failed") % {"from": label, "done": bar.done, "failed": bar.failed}
    parts = (("done", 0, bar.done), ("failed", bar.done, bar.failed))
    return [grid.box(kind, place, count, below=below, title=title) for kind, below, count in parts if count]


def _moment(moment: datetime, *, with_date: bool) -> str:
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    return f"{local:%m-%d %H:%M}" if with_date else f"{local:%H:%M}"
