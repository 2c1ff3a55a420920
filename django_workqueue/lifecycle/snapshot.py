"""Snapshot: the numbers that monitors keep, read from counters, rollups and bounded counts in a few statements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Sum

from ..models import QueueMinute, Worker
from ..store import Store, store_for
from ..store.watch import QueueStats
from .operate import silence, stats

SPAN = timedelta(minutes=5)
"""How far back the figures of tasks reach."""
PATIENCE = timedelta(seconds=5)
"""How long one statement may take: a monitor asks again."""
MOST_ROLLUPS = 20_000
"""Rollups that are read, one for each worker, queue, task and minute; the latest ones if there are more."""
QUANTILES = (0.5, 0.95, 0.99)


@dataclass(slots=True)
class TaskFigures:
    """What became of one task in one queue within SPAN. Waits and runs count jobs by powers of two of milliseconds."""

    queue: str
    task: str
    done: int = 0
    failed: int = 0
    dead: int = 0
    waits: list[int] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFigures:
    """The live worker processes together."""

    processes: int
    slots: int
    running: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The queue at one moment, by the clock of its database."""

    read_at: datetime
    queues: list[QueueStats]
    tasks: list[TaskFigures]
    workers: WorkerFigures


def snapshot(*, database: str | None = None) -> Snapshot:
    """
    Read the numbers. The statements are as many whatever the backlog, and none of them scans it.

    Raises OperationalError when one takes longer than PATIENCE.
    """
    store = store_for(database)
    with store.looking(PATIENCE):
        now = store.now()
        return Snapshot(
            read_at=now, queues=stats(database=database), tasks=_tasks(store, now), workers=_workers(store, now)
        )


def quantile(histogram: Iterable[int], share: float) -> float | None:
    """Return the seconds that ``share`` of the counted jobs stayed below, up to the next power of two; None of none."""
    counts = list(histogram)
    total, reached = sum(counts), 0
    for bucket, count in enumerate(counts):
        reached += count
        if total and reached >= share * total:
            return float(2**bucket) / 1000
    return None


def _workers(store: Store, now: datetime) -> WorkerFigures:
    live = Worker.objects.using(store.alias).filter(seen_at__gt=now - silence())
    sums = live.aggregate(
        processes=Count("pk"), slots=Sum("slots"), running=Sum("running"), memory_bytes=Sum("memory_bytes")
    )
    return WorkerFigures(**{name: value or 0 for name, value in sums.items()})


def _tasks(store: Store, now: datetime) -> list[TaskFigures]:
    minutes = QueueMinute.objects.using(store.alias).filter(minute__gt=now - SPAN).order_by("-minute")
    found: dict[tuple[str, str], TaskFigures] = {}
    for row in minutes[:MOST_ROLLUPS]:
        figures = found.setdefault((row.queue, row.task), TaskFigures(row.queue, row.task))
        figures.done += row.done
        figures.failed += row.failed
        figures.dead += row.dead
        figures.waits = _added(figures.waits, row.wait_histogram)
        figures.runs = _added(figures.runs, row.run_histogram)
    return [found[key] for key in sorted(found)]


def _added(counts: list[int], histogram: str) -> list[int]:
    more = [int(number) for number in histogram.split(",") if number]
    longer, shorter = (counts, more) if len(counts) >= len(more) else (more, counts)
    return [each + (shorter[place] if place < len(shorter) else 0) for place, each in enumerate(longer)]
