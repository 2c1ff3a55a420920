"""Figures: how it went, from the rollups per minute that workers write. Nothing here reads the jobs themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..store import Store, store_for
from ..store.survey import MINUTES_READ, Passed
from .snapshot import quantile

PATIENCE = timedelta(seconds=3)
"""How long one statement of a page of figures may take."""
RANGES = {
    "1h": (timedelta(hours=1), timedelta(minutes=1)),
    "6h": (timedelta(hours=6), timedelta(minutes=5)),
    "24h": (timedelta(hours=24), timedelta(minutes=30)),
    "7d": (timedelta(days=7), timedelta(hours=3)),
    "30d": (timedelta(days=30), timedelta(hours=12)),
}
"""How far back, and how long each bar of a chart is."""
MOST_TASKS = 1000
"""Pairs of queue and task that are told apart, those with the most done."""
BUCKETS = 32


@dataclass(frozen=True, slots=True)
class Bar:
    """What happened from ``start`` on, for the length of a bar."""

    start: datetime
    done: int = 0
    failed: int = 0
    dead: int = 0


@dataclass(slots=True)
class Times:
    """How long jobs took: counts by powers of two of milliseconds."""

    counts: list[int] = field(default_factory=lambda: [0] * BUCKETS)

    def add(self, text: str) -> None:
        """Add one stored histogram; what is none adds nothing."""
        if text:
            for place, count in enumerate(text.split(",")[:BUCKETS]):
                self.counts[place] += int(count)

    @property
    def total(self) -> timedelta:
        """About how long they took together, each for the middle of its bucket."""
        return timedelta(milliseconds=sum(count * 2**place * 0.75 for place, count in enumerate(self.counts)))

    def percentile(self, share: float) -> timedelta | None:
        """Return a time that ``share`` of the jobs did not exceed: the upper end of a bucket, so at most twice it."""
        seconds = quantile(self.counts, share)
        return None if seconds is None else timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """How one queue went."""

    passed: Passed
    waits: Times
    runs: Times


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """How one task went in one queue."""

    queue: str
    task: str
    passed: Passed
    waits: Times
    runs: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a page of statistics shows."""

    bars: list[Bar]
    tasks: list[TaskFigures]
    """Those with the most done first."""
    queues: dict[str, QueueFigures]
    """In name order."""
    waits: Times
    runs: Times
    attempts: dict[int, int]
    is_partial: bool
    """Whether the times are those of the newest rollups alone, since there are more than are read."""


def bars(period: str, *, queue: str = "", task: str = "", database: str | None = None) -> list[Bar]:
    """Return the bars of one of RANGES, oldest first, empty ones included."""
    store = store_for(database)
    span, step = RANGES[period]
    now = store.now()
    return _bars(store, _start(now, span, step), now, step, (queue, task))


def figures(period: str, *, queue: str = "", task: str = "", database: str | None = None) -> Figures:
    """Return the figures of one of RANGES: of everything, or of one queue or task. A fixed number of statements."""
    store = store_for(database)
    span, step = RANGES[period]
    now = store.now()
    since = _start(now, span, step)
    waits, runs, read = _times(store.histograms(since, now, queue, task))
    tasks = [
        TaskFigures(name, path, passed, waits.get((name, path), Times()), runs.get((name, path), Times()))
        for name, path, passed in store.passed_by_task(since, MOST_TASKS, queue, task)
    ]
    return Figures(
        bars=_bars(store, since, now, step, (queue, task)),
        tasks=tasks,
        queues=_by_queue(tasks),
        waits=_together(waits.values()),
        runs=_together(runs.values()),
        attempts=dict(sorted(store.attempts_taken().items())),
        is_partial=read >= MINUTES_READ,
    )


def by_queue(period: str, *, database: str | None = None) -> dict[str, QueueFigures]:
    """Return the figures of each queue that did something within one of RANGES, by two statements."""
    store = store_for(database)
    now = store.now()
    since = _start(now, *RANGES[period])
    waits, runs, _read = _times((queue, "", waited, ran) for queue, _task, waited, ran in store.histograms(since, now))
    return {
        queue: QueueFigures(passed, waits.get((queue, ""), Times()), runs.get((queue, ""), Times()))
        for queue, passed in store.passed_by_queue(since).items()
    }


def _start(now: datetime, span: timedelta, step: timedelta) -> datetime:
    """Return where the first bar begins: bars begin at full multiples of their length since midnight."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (now - midnight) // step * step - span + step


def _bars(store: Store, since: datetime, now: datetime, step: timedelta, of: tuple[str, str]) -> list[Bar]:
    sums = [[0, 0, 0] for _ in range((now - since) // step + 1)]
    for minute, passed in store.passed_by_minute(since, *of).items():
        # A worker whose clock is ahead may have written a minute that is still to come.
        place = min((minute - since) // step, len(sums) - 1)
        sums[place] = [total + more for total, more in zip(sums[place], passed, strict=True)]
    return [Bar(since + place * step, *counts) for place, counts in enumerate(sums)]


def _times(
    histograms: Iterable[tuple[str, str, str, str]],
) -> tuple[dict[tuple[str, str], Times], dict[tuple[str, str], Times], int]:
    waits: dict[tuple[str, str], Times] = {}
    runs: dict[tuple[str, str], Times] = {}
    read = 0
    for queue, task, waited, ran in histograms:
        waits.setdefault((queue, task), Times()).add(waited)
        runs.setdefault((queue, task), Times()).add(ran)
        read += 1
    return waits, runs, read


def _by_queue(tasks: Iterable[TaskFigures]) -> dict[str, QueueFigures]:
    """Add up the tasks of each queue."""
    found: dict[str, list[TaskFigures]] = {}
    for each in tasks:
        found.setdefault(each.queue, []).append(each)
    return {
        queue: QueueFigures(
            Passed(*(sum(counts) for counts in zip(*(each.passed for each in some), strict=True))),
            _together([each.waits for each in some]),
            _together([each.runs for each in some]),
        )
        for queue, some in sorted(found.items())
    }


def _together(times: Iterable[Times]) -> Times:
    columns: Sequence[tuple[int, ...]] = list(zip(*(each.counts for each in times), strict=True))
    return Times([sum(column) for column in columns]) if columns else Times()
