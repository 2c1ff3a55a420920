"""Bounded looks at what may be wrong and at how it went. Nothing here writes or locks a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import OperationalError
from django.db.migrations.loader import MigrationLoader
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from ..models import DeadLetter, Failure, FinishedJob, Job, QueueMinute, Schedule, Worker
from .few import Picking
from .rollups import KEPT_BY_MINUTE

LOOKED_THROUGH = 1000
"""Rows, the newest of a table, among which something is looked for."""
NAMED = 20
"""Rows that one warning names."""
MINUTES_READ = 20_000
"""Rollups, the newest, whose histograms are added up for percentiles."""


class Snapshot(NamedTuple):
    """Who keeps dead rows from being removed: a session, a replication slot or a prepared transaction."""

    kind: str
    name: str
    user: str
    program: str
    state: str
    age: timedelta | None
    transactions: int

    @property
    def ending(self) -> str:
        """The statement that ends it, to be run by a person who knows what it is."""
        name = self.name.replace("'", "''")
        statements = {
            "session": f"SELECT pg_terminate_backend({self.name})",
            "slot": f"SELECT pg_drop_replication_slot('{name}')",
            "prepared": f"ROLLBACK PREPARED '{name}'",
        }
        return statements[self.kind]


class Bloat(NamedTuple):
    """How many rows of a table are dead, by the server's own estimate."""

    table: str
    live: int
    dead: int
    vacuumed_ago: timedelta | None


class Passed(NamedTuple):
    """Additions of rollups."""

    done: int
    failed: int
    dead: int


class Fleet(NamedTuple):
    """The live workers together."""

    workers: int
    slots: int
    running: int


class Surveying(Picking):
    """What warnings and statistics are made of."""

    @contextmanager
    def looking(self, most: timedelta) -> Iterator[None]:  # noqa: ARG002 - PostgreSQL's does
        """
        Run a block that only reads, in which no statement may take longer than ``most``, where that can be had.

        Within another such block, what that one allows holds.
        """
        # No transaction: where one writer stands for all, an open one could be that writer.
        yield

    def is_too_slow(self, error: Exception) -> bool:
        """Whether ``error`` says that a statement took longer than it may."""
        return isinstance(error, OperationalError) and getattr(error.__cause__, "sqlstate", None) == "57014"

    def fleet(self, silence: timedelta) -> Fleet:
        """Add up the workers seen within ``silence``."""
        live = Worker.objects.using(self.alias).filter(seen_at__gt=self.now() - silence)
        sums = live.aggregate(workers=Count("pk"), slots=Sum("slots", default=0), running=Sum("running", default=0))
        return Fleet(**{name: sums[name] for name in Fleet._fields})

    def silent_workers(self, silence: timedelta) -> list[tuple[Worker, timedelta]]:
        """Return workers that have not been seen for ``silence``, with for how long, the last seen first."""
        now = self.now()
        rows = Worker.objects.using(self.alias).filter(seen_at__lte=now - silence).order_by("-seen_at")
        return [(row, now - row.seen_at) for row in rows[:NAMED]]

    def late_schedules(self, grace: timedelta) -> list[tuple[Schedule, timedelta]]:
        """Return enabled schedules whose time has passed by ``grace``, with by how much, the latest first."""
        now = self.now()
        rows = Schedule.objects.using(self.alias).filter(enabled=True, next_at__lte=now - grace).order_by("next_at")
        return [(row, now - row.next_at) for row in rows[:NAMED] if row.next_at is not None]

    def faulty_schedules(self) -> list[Schedule]:
        """Return enabled schedules with a fault."""
        return list(Schedule.objects.using(self.alias).filter(enabled=True).exclude(fault="").order_by("name")[:NAMED])

    def live_tasks(self) -> Counter[str]:
        """Count the task names among the newest live jobs."""
        tasks = Job.objects.using(self.alias).order_by("-id").values_list("task", flat=True)
        return Counter(tasks[:LOOKED_THROUGH])

    def failure_kinds(self, within: timedelta) -> Counter[str]:
        """Count the kinds of the newest failures, as far as they lie ``within`` that time."""
        since = self.now() - within
        rows = Failure.objects.using(self.alias).order_by("-id").values_list("kind", "failed_at")
        return Counter(kind for kind, failed_at in rows[:LOOKED_THROUGH] if failed_at >= since)

    def clock_difference(self) -> timedelta:
        """Return by how much the clock of this process is ahead of the database's, as near as one look can tell."""
        before = timezone.now()
        stamp = self.now()
        return before + (timezone.now() - before) / 2 - stamp

    def skewed_workers(self, silence: timedelta, difference: timedelta) -> list[Worker]:
        """Return live workers whose clock differs from the database's by ``difference`` or more, by name."""
        live = Worker.objects.using(self.alias).filter(seen_at__gt=self.now() - silence)
        is_off = Q(clock_ahead__gte=difference) | Q(clock_ahead__lte=-difference)
        return list(live.filter(is_off).order_by("name")[:NAMED])

    def missing_migrations(self, app: str) -> list[str]:
        """Return the migrations of ``app`` that are not applied, in order."""
        loader = MigrationLoader(self.connection)
        names = sorted(name for label, name in loader.graph.nodes if label == app)
        return [name for name in names if (app, name) not in loader.applied_migrations]

    def snapshots(self, limit: int = 3) -> list[Snapshot]:  # noqa: ARG002 - PostgreSQL's does
        """Return who holds the oldest snapshots, the oldest first; none where rows do not die by snapshots."""
        return []

    def bloat(self) -> list[Bloat]:
        """Return the hot tables with their dead rows, most first; none where there are no such rows."""
        return []

    def latest_dead(self, limit: int) -> list[DeadLetter]:
        """Return the dead letters that died last."""
        return list(DeadLetter.objects.using(self.alias).order_by("-died_at", "-id")[:limit])

    # -- rollups -------------------------------------------------------------------------------------------------

    def passed_by_minute(self, since: datetime, queue: str = "", task: str = "") -> dict[datetime, Passed]:
        """Add up the rollups of each minute from ``since`` on."""
        return {minute: Passed(*sums) for minute, *sums in _summed(self._minutes(since, queue, task), "minute")}

    def passed_by_queue(self, since: datetime) -> dict[str, Passed]:
        """Add up the rollups of each queue from ``since`` on."""
        return {queue: Passed(*sums) for queue, *sums in _summed(self._minutes(since), "queue")}

    def passed_by_task(
        self, since: datetime, limit: int, queue: str = "", task: str = ""
    ) -> list[tuple[str, str, Passed]]:
        """Add up the rollups of each queue and task from ``since`` on, those with the most first."""
        rows = _summed(self._minutes(since, queue, task), "queue", "task").order_by(
            "-all_done", "-all_failed", "queue", "task"
        )
        return [(queue, task, Passed(*sums)) for queue, task, *sums in rows[:limit]]

    def histograms(
        self, since: datetime, now: datetime, queue: str = "", task: str = ""
    ) -> Iterator[tuple[str, str, str, str]]:
        """
        Yield queue, task, waits and runs of the rollups from ``since`` on, the newest first, MINUTES_READ at most.

        Hours go before minutes: a month is better told by all its days but some hours than by its last hours alone.
        """
        rows = self._minutes(since, queue, task).order_by("-minute", "-queue", "-task", "-worker")
        columns = rows.values_list("queue", "task", "wait_histogram", "run_histogram")
        by_minute = now - KEPT_BY_MINUTE
        # Told apart by the worker that an hour has not: the index that has it has the task too, is_hour's has neither.
        hours = list(columns.filter(worker="", minute__lt=by_minute)[:MINUTES_READ]) if since < by_minute else []
        yield from hours
        yield from columns.filter(worker__gt="")[: MINUTES_READ - len(hours)].iterator(chunk_size=2000)

    def attempts_taken(self) -> Counter[int]:
        """Count how many attempts each of the newest finished jobs and dead letters took."""
        tables = [kind._default_manager.using(self.alias) for kind in (FinishedJob, DeadLetter)]
        rows = [table.order_by("-id").values_list("attempts", flat=True) for table in tables]
        return Counter(attempts for found in rows for attempts in found[:LOOKED_THROUGH])

    def _minutes(self, since: datetime, queue: str = "", task: str = "") -> QuerySet[QueueMinute]:
        rows = QueueMinute.objects.using(self.alias).filter(minute__gte=since)
        rows = rows.filter(queue=queue) if queue else rows
        return rows.filter(task=task) if task else rows


def _summed(rows: QuerySet[QueueMinute], *by: str) -> QuerySet[Any, Any]:
    sums = {f"all_{name}": Sum(name) for name in ("done", "failed", "dead")}
    return rows.order_by().values_list(*by).annotate(**sums)
