"""What workers report of themselves, and the bounded reads that statistics are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import IntegrityError
from django.db.models import F, QuerySet
from django.utils import timezone

from ..domain.states import PauseKind
from ..models import DeadLetter, Job, Lease, Pause, Queue, QueueMinute, Worker
from ..models.base import NAME_LENGTH
from ..models.worker import WorkerRequest, WorkerState
from .claim import Claiming

COUNT_CAP = 10_000
"""Counts stop here: a page that counts a million rows every few seconds is the biggest load on the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """One queue at one moment. Depth never stands without age."""

    queue: str
    paused: bool = False
    ready: int = 0
    scheduled: int = 0
    retrying: int = 0
    """Those of the scheduled jobs that wait for their next try."""
    blocked: int = 0
    parked: int = 0
    leased: int = 0
    dead: int = 0
    capped: frozenset[str] = frozenset()
    """Those of the counts above that stopped at COUNT_CAP: there may be more."""
    oldest_age_seconds: float = 0.0
    """How long the oldest ready job has waited; 0 when none does."""
    workers: int = 0
    """Live worker processes that serve the queue."""
    done: int = 0
    failed: int = 0
    died: int = 0
    cancelled: int = 0
    reaped: int = 0
    duplicates: int = 0

    @property
    def depth(self) -> int:
        """Jobs that wait, for a worker or for whatever else."""
        return self.ready + self.scheduled + self.blocked + self.parked

    @property
    def unserved(self) -> bool:
        """Whether work waits and no live worker serves the queue."""
        return self.ready > 0 and not self.workers and not self.paused


@dataclass(slots=True)
class QueueCounts:
    """Additions to a queue's counters."""

    done: int = 0
    failed: int = 0
    dead: int = 0
    cancelled: int = 0
    reaped: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker process says of itself at every beat."""

    state: str
    memory_bytes: int
    running: int
    done: int
    failed: int


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker process that was seen lately, with the patterns of the queues that it serves."""

    id: str
    queues: str


class ReadyWork(NamedTuple):
    """The ready jobs of one queue: how many, and for how long the oldest has waited."""

    queue: str
    ready: int
    oldest_age_seconds: float


class Watching(Claiming):
    """Worker rows, counters, rollups and statistics."""

    def register_worker(
        self, worker: Worker, *, replacing: Iterable[Worker] = (), renaming: Iterable[str] = ()
    ) -> bool:
        """
        Store the row of a worker process that starts. False when another row has its name.

        The rows of ``replacing``, processes that are gone, make room, unless one was seen again meanwhile; the workers
        with the ids ``renaming``, which live, go on under their ids.
        """
        worker.started_at = worker.seen_at = self.now()
        worker.clock_ahead = timezone.now() - worker.seen_at
        rows = Worker.objects.using(self.alias)
        try:
            with self.transaction():
                for gone in replacing:
                    rows.filter(pk=gone.pk, seen_at=gone.seen_at).delete()
                for pk in renaming:
                    rows.filter(pk=pk).update(name=pk[-NAME_LENGTH:])
                worker.save(using=self.alias, force_insert=True)
        except IntegrityError:
            return False
        return True

    def namesake(self, name: str) -> tuple[Worker, timedelta] | None:
        """Return the worker row of this name, with how long it has been silent; None when the name is free."""
        worker = Worker.objects.using(self.alias).filter(name=name).first()
        return None if worker is None else (worker, self.now() - worker.seen_at)

    def beat_worker(self, worker_id: str, beat: Beat) -> str | None:
        """Note that the worker is alive and what it does, and return its WorkerRequest; None when its row is gone."""
        rows = Worker.objects.using(self.alias).filter(pk=worker_id)
        rows.update(
            seen_at=self.clock(),
            clock_ahead=timezone.now() - self.clock(),
            state=beat.state,
            memory_bytes=beat.memory_bytes,
            running=beat.running,
            done=beat.done,
            failed=beat.failed,
        )
        return rows.values_list("request", flat=True).first()

    def ask_worker(self, worker_id: str, request: str, *, by: str) -> bool:
        """
        Note what is wanted of a worker, a WorkerRequest, for it to find at its next beat.

        False, with nothing written, when its row is gone or it was asked to stop: it may have heard that already.
        """
        rows = Worker.objects.using(self.alias).filter(pk=worker_id).exclude(request=WorkerRequest.STOP)
        return bool(rows.update(request=request, requested_at=self.clock(), requested_by=by))

    def forget_worker(self, worker_id: str, silence: timedelta) -> bool:
        """
        Remove the row of a worker that has not been seen for ``silence``, and let its leases lapse at once.

        Whoever reaps next takes its jobs back with their attempts counted, and the worker, should it live after all, is
        refused as after any lapse. False, with nothing written, when it was seen since or its row is gone.
        """
        with self.transaction():
            silent = Worker.objects.using(self.alias).filter(pk=worker_id, seen_at__lte=self.now() - silence)
            if not silent.delete()[0]:
                return False
            held = Lease.objects.using(self.alias).filter(worker=worker_id, expires_at__gt=self.clock())
            held.update(expires_at=self.clock())
        return True

    def retire_worker(self, worker_id: str) -> None:
        """Remove the row of a worker process that stopped in good order."""
        Worker.objects.using(self.alias).filter(pk=worker_id).delete()

    def live_workers(self, silence: timedelta) -> list[LiveWorker]:
        """Return the workers seen within ``silence`` that claim, as a quiet one does not."""
        seen = Worker.objects.using(self.alias).filter(seen_at__gt=self.now() - silence)
        seen = seen.exclude(state=WorkerState.QUIET)
        return [LiveWorker(*row) for row in seen.values_list("pk", "queues")]

    def add_counts(self, counts: Mapping[str, QueueCounts]) -> None:
        """Add to the counters of these queues, in name order: two workers never wait for each other in a ring."""
        with self.transaction():
            rows = Queue.objects.using(self.alias)
            rows.bulk_create((Queue(name=name) for name in sorted(counts)), ignore_conflicts=True)
            for name, more in sorted(counts.items()):
                rows.filter(pk=name).update(
                    done=F("done") + more.done,
                    failed=F("failed") + more.failed,
                    dead=F("dead") + more.dead,
                    cancelled=F("cancelled") + more.cancelled,
                    reaped=F("reaped") + more.reaped,
                    duplicates=F("duplicates") + more.duplicates,
                )

    def write_minutes(self, minutes: Iterable[QueueMinute]) -> None:
        """Store a worker's rollups whole; writing one again replaces it."""
        QueueMinute.objects.using(self.alias).bulk_create(
            minutes,
            update_conflicts=True,
            unique_fields=("minute", "queue", "task", "worker"),
            update_fields=("done", "failed", "dead", "wait_histogram", "run_histogram"),
        )

    # -- statistics ----------------------------------------------------------------------------------------------

    def stats(self, workers_of: Callable[[str], int]) -> list[QueueStats]:
        """Return the statistics of every queue in sight; ``workers_of`` tells how many live workers serve one."""
        rows = {row.pk: row for row in Queue.objects.using(self.alias).all()}
        jobs = Job.objects.using(self.alias)
        ready = self.ready_work(COUNT_CAP)
        ages = {each.queue: each.oldest_age_seconds for each in ready}
        paused = set(Pause.objects.using(self.alias).filter(kind=PauseKind.QUEUE).values_list("name", flat=True))
        # Told apart here: no index has the attempts.
        due = jobs.scheduled().order_by().values_list("queue", "attempts")[:COUNT_CAP]
        counts = {
            "ready": Counter({each.queue: each.ready for each in ready}),
            "scheduled": Counter(queue for queue, _attempts in due),
            "retrying": Counter(queue for queue, attempts in due if attempts),
            "blocked": self._capped(jobs.blocked()),
            "parked": self._capped(jobs.parked()),
            "leased": self._capped(jobs.filter(lease__isnull=False)),
            "dead": self._capped(DeadLetter.objects.using(self.alias).order_by("-died_at", "-id")),
        }
        names = {*rows, *ages, *(name for count in counts.values() for name in count)}
        return [
            self._queue_stats(
                rows.get(name) or Queue(name=name), workers_of(name), counts, ages.get(name, 0.0), paused=name in paused
            )
            for name in sorted(names)
        ]

    def ready_work(self, most: int) -> list[ReadyWork]:
        """
        Return each queue that has ready jobs, in name order, with how many, counted up to ``most``, and their age.

        Each is counted by itself: behind another queue's backlog a few jobs must not read as none.
        """
        return [
            ReadyWork(name, self._ready().filter(queue=name)[:most].count(), self._oldest_age(name))
            for name in self.ready_queues()
        ]

    def _queue_stats(
        self, row: Queue, workers: int, counts: Mapping[str, Counter[str]], oldest_age_seconds: float, *, paused: bool
    ) -> QueueStats:
        return QueueStats(
            queue=row.name,
            paused=paused,
            capped=frozenset(state for state in counts if _is_capped(state, counts, row.name)),
            oldest_age_seconds=oldest_age_seconds,
            workers=workers,
            done=row.done,
            failed=row.failed,
            died=row.dead,
            cancelled=row.cancelled,
            reaped=row.reaped,
            duplicates=row.duplicates,
            **{state: count[row.name] for state, count in counts.items()},
        )

    def _capped(self, rows: QuerySet[Any]) -> Counter[str]:
        """Count by queue among the first COUNT_CAP rows: a count over all would scan the backlog."""
        return Counter(rows.values_list("queue", flat=True)[:COUNT_CAP])

    def _oldest_age(self, queue: str) -> float:
        """Return for how many seconds the oldest ready job has waited: it is at the head of its lane's level."""
        heads = self._ready().filter(queue=queue).order_by("tenant", "rank", "ready_at")
        columns = heads.values_list("tenant", "rank", "ready_at")
        oldest: datetime | None = None
        head = columns.first()
        while head is not None:
            tenant, rank, ready_at = head
            oldest = ready_at if oldest is None else min(oldest, ready_at)
            head = columns.filter(tenant=tenant, rank__gt=rank).first() or columns.filter(tenant__gt=tenant).first()
        return 0.0 if oldest is None else max(0.0, (self.now() - oldest).total_seconds())


def _is_capped(state: str, counts: Mapping[str, Counter[str]], queue: str) -> bool:
    """Whether a count stopped early: ready jobs are counted for each queue, the others over all of them together."""
    looked_through = counts["scheduled" if state == "retrying" else state]
    return (looked_through[queue] if state == "ready" else looked_through.total()) >= COUNT_CAP
