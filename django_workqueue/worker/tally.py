"""Counting what this worker did, in memory, for the rollups and counters that maintenance writes every few seconds."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.utils import timezone

from ..domain.outcomes import Bury, Cancel, Decision, Failed, Settlement
from ..models import QueueMinute
from ..store.watch import QueueCounts

_BUCKETS = 32
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class _Minute:
    done: int = 0
    failed: int = 0
    dead: int = 0
    waits: list[int] = field(default_factory=lambda: [0] * _BUCKETS)
    runs: list[int] = field(default_factory=lambda: [0] * _BUCKETS)


class Tally:
    """Thread-safe. ``done`` and ``failed`` count since the start; the rest is taken by whoever writes it down."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._minutes: dict[tuple[datetime, str, str], _Minute] = defaultdict(_Minute)
        self._changed: set[tuple[datetime, str, str]] = set()
        self._counts: dict[str, QueueCounts] = defaultdict(QueueCounts)
        self.done = 0
        self.failed = 0

    def add_done(self, settlements: Sequence[Settlement]) -> None:
        """Count successes."""
        with self._lock:
            for (queue, task), mine in _by_task(settlements).items():
                self._minute(queue, task, mine).done += len(mine)
                self._counts[queue].done += len(mine)
            self.done += len(settlements)

    def add_failed(self, settlement: Settlement, decision: Decision) -> None:
        """Count an attempt that did not succeed, with what was decided. One that was cancelled has not failed."""
        failed, died = isinstance(settlement.outcome, Failed), isinstance(decision, Bury)
        with self._lock:
            job = settlement.job
            minute, counts = self._minute(job.queue, job.task, [settlement]), self._counts[job.queue]
            minute.failed += failed
            counts.failed += failed
            minute.dead += died
            counts.dead += died
            counts.cancelled += isinstance(decision, Cancel)
            self.failed += failed

    def _minute(self, queue: str, task: str, settlements: Sequence[Settlement]) -> _Minute:
        """Return this minute's rollup of a queue and task, with the waits and runs of these settlements counted."""
        key = (timezone.now().replace(second=0, microsecond=0), queue, task)
        self._changed.add(key)
        minute = self._minutes[key]
        # For charts only, so the worker's clock will do. In the jobs' own zone: a difference within one costs nothing.
        now = datetime.now(settlements[0].job.ready_at.tzinfo)
        for job, outcome, *_ in settlements:
            run_seconds = outcome.run_seconds
            minute.runs[_bucket(run_seconds)] += 1
            minute.waits[_bucket((now - job.ready_at).total_seconds() - run_seconds)] += 1
        return minute

    def take_counts(self) -> dict[str, QueueCounts]:
        """Take the additions to the queues' counters."""
        with self._lock:
            taken, self._counts = dict(self._counts), defaultdict(QueueCounts)
        return taken

    def give_back(self, counts: dict[str, QueueCounts]) -> None:
        """Count these again: they could not be written."""
        with self._lock:
            for name, more in counts.items():
                mine = self._counts[name]
                mine.done += more.done
                mine.failed += more.failed
                mine.dead += more.dead
                mine.cancelled += more.cancelled

    def minutes(self) -> list[QueueMinute]:
        """Return the rollups that changed since they were last written, whole."""
        with self._lock:
            return [self._row(key) for key in sorted(self._changed)]

    def written(self, rows: Iterable[QueueMinute]) -> None:
        """Note that these rollups are stored, and forget the minutes that are over."""
        this_minute = timezone.now().replace(second=0, microsecond=0)
        with self._lock:
            for row in rows:
                key = (row.minute, row.queue, row.task)
                if _is_same(row, self._row(key)):
                    self._changed.discard(key)
                if row.minute < this_minute and key not in self._changed:
                    del self._minutes[key]

    def _row(self, key: tuple[datetime, str, str]) -> QueueMinute:
        (minute, queue, task), counts = key, self._minutes[key]
        return QueueMinute(
            minute=minute,
            queue=queue,
            task=task,
            worker=self._worker,
            done=counts.done,
            failed=counts.failed,
            dead=counts.dead,
            wait_histogram=",".join(map(str, counts.waits)),
            run_histogram=",".join(map(str, counts.runs)),
        )


def _is_same(row: QueueMinute, other: QueueMinute) -> bool:
    """Whether nothing was counted between the two."""
    # Whatever is counted has run. One that was cancelled is in no other number.
    return row.run_histogram == other.run_histogram


def _by_task(settlements: Sequence[Settlement]) -> dict[tuple[str, str], list[Settlement]]:
    """Return the settlements of each queue and task."""
    found: dict[tuple[str, str], list[Settlement]] = defaultdict(list)
    for settlement in settlements:
        found[settlement.job.queue, settlement.job.task].append(settlement)
    return found


def _bucket(seconds: float) -> int:
    """Return the number of the histogram bucket: the count of bits of the whole milliseconds."""
    if seconds < 0.001:
        return 0
    bits = int(seconds * 1000).bit_length()
    return bits if bits < _BUCKETS else _BUCKETS - 1


def memory_bytes() -> int:
    """Return the resident memory of this process, 0 where the system does not tell it in the usual place."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
