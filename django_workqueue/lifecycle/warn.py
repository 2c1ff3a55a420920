"""Warn: say what is wrong with the queue, or soon will be, and what to do about it. From bounded reads, lock-free."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..domain.registry import resolve
from ..domain.states import FailureKind
from ..exceptions import TaskNotRegisteredError
from ..store import Store, store_for
from ..store.survey import Bloat, Snapshot
from ..store.watch import QueueStats
from . import operate

APP = "django_workqueue"
LATE = timedelta(minutes=1)
"""By how much a schedule may be late: workers look every few seconds."""
OLD_SNAPSHOT = timedelta(minutes=5)
OLD_TRANSACTIONS = 1_000_000
"""Transactions that a snapshot without an age, such as a slot's, may lie behind."""
MANY_DEAD_ROWS = 50_000
LATELY = timedelta(hours=1)
CLOCK_DIFFERENCE = timedelta(seconds=2)
MOST_TASKS = 50
"""Names of tasks that one look tries to import."""
KINDS = (
    "migration",
    "unserved",
    "silent_worker",
    "lost_leases",
    "unknown_task",
    "late_schedule",
    "faulty_schedule",
    "old_snapshot",
    "dead_rows",
    "clock",
)
"""What can be wrong, the most urgent first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: a word for programs, the fact with its values, and the remedy."""

    kind: str
    fact: str
    remedy: str


def warnings(
    stats: Sequence[QueueStats] | None = None, *, kinds: Collection[str] = KINDS, database: str | None = None
) -> list[Finding]:
    """
    Return all that is wrong of these ``kinds``, the most urgent first. What is not asked for is not read.

    ``stats`` saves reading what the caller has read.
    """
    store = store_for(database)
    looks: list[tuple[set[str], Callable[[], Iterable[Finding]]]] = [
        ({"migration"}, lambda: _unmigrated(store)),
        ({"unserved"}, lambda: _unserved(operate.stats(database=database) if stats is None else stats)),
        ({"silent_worker"}, lambda: _silent(store)),
        ({"lost_leases"}, lambda: _lost(store)),
        ({"unknown_task"}, lambda: _unknown(store)),
        ({"late_schedule", "faulty_schedule"}, lambda: _schedules(store)),
        ({"old_snapshot"}, lambda: _snapshots(store.snapshots())),
        ({"dead_rows"}, lambda: _bloat(store.bloat())),
        ({"clock"}, lambda: _clock(store)),
    ]
    wanted = set(kinds)
    return [found for told, look in looks if told & wanted for found in look() if found.kind in wanted]


def _unmigrated(store: Store) -> Iterator[Finding]:
    for name in store.missing_migrations(APP):
        yield Finding(
            "migration",
            _("The migration %(name)s is not applied.") % {"name": name},
            _("Run manage.py migrate %(app)s. Workers of the new version wait for it.") % {"app": APP},
        )


def _unserved(stats: Iterable[QueueStats]) -> Iterator[Finding]:
    for queue in stats:
        if queue.unserved:
            yield Finding(
                "unserved",
                _("Queue %(queue)s has %(count)s ready jobs, the oldest for %(age)s, and no live worker serves it.")
                % {
                    "queue": queue.queue,
                    "count": f"{queue.ready}{'+' if 'ready' in queue.capped else ''}",
                    "age": words(timedelta(seconds=queue.oldest_age_seconds)),
                },
                _(
                    "Start one: manage.py runworkers --queues %(queue)s, or resume one that is quiet. If the name is "
                    "misspelt, correct it where the jobs are enqueued."
                )
                % {"queue": queue.queue},
            )


def _silent(store: Store) -> Iterator[Finding]:
    for worker, age in store.silent_workers(operate.silence()):
        yield Finding(
            "silent_worker",
            _("Worker %(worker)s on %(host)s, process %(pid)s, has not been heard of for %(age)s.")
            % {"worker": worker.name, "host": worker.host, "pid": worker.pid, "age": words(age)},
            _(
                "If it was killed, nothing is lost: its jobs come back when their leases lapse, or at once when you "
                "forget it. If the process still runs, look in its log for why it cannot reach the database."
            ),
        )


def _lost(store: Store) -> Iterator[Finding]:
    kinds = store.failure_kinds(LATELY)
    lost = kinds[FailureKind.LAPSED] + kinds[FailureKind.CAPPED]
    if lost:
        yield Finding(
            "lost_leases",
            ngettext(
                "%(count)d attempt was lost with its lease in the last hour.",
                "%(count)d attempts were lost with their leases in the last hour.",
                lost,
            )
            % {"count": lost},
            _(
                "Workers were killed, ran out of memory, or could not reach the database for longer than a lease. Look "
                "for restarts of processes; a job that exceeds the longest lease needs a timeout, or a longer one."
            ),
        )


def _unknown(store: Store) -> Iterator[Finding]:
    for task, count in store.live_tasks().most_common(MOST_TASKS):
        try:
            resolve(task)
        except TaskNotRegisteredError as error:
            yield Finding(
                "unknown_task",
                ngettext(
                    "%(count)d of the newest live jobs is of %(task)s, which this code does not have.",
                    "%(count)d of the newest live jobs are of %(task)s, which this code does not have.",
                    count,
                )
                % {"count": count, "task": task},
                _("Deploy the code that has it, or name its successor in WORKQUEUE['ALIASES']. %(error)s")
                % {"error": error},
            )


def _schedules(store: Store) -> Iterator[Finding]:
    for schedule, late in store.late_schedules(LATE):
        yield Finding(
            "late_schedule",
            _("Schedule %(name)s should have fired %(late)s ago.") % {"name": schedule.name, "late": words(late)},
            _("Any live worker fires schedules: start one, or look in the workers' logs for why they cannot."),
        )
    for schedule in store.faulty_schedules():
        yield Finding(
            "faulty_schedule",
            _("Schedule %(name)s is at fault: %(fault)s") % {"name": schedule.name, "fault": schedule.fault},
            _("Correct it where it is defined, or switch it off."),
        )


def _snapshots(found: Iterable[Snapshot]) -> Iterator[Finding]:
    remedies = {
        "session": _("Let it end its transaction, or end the session: %(statement)s"),
        "slot": _("Bring back the replica that uses it, or drop it: %(statement)s"),
        "prepared": _("Commit it, or take it back: %(statement)s"),
    }
    for snapshot in found:
        if (snapshot.age or timedelta()) >= OLD_SNAPSHOT or snapshot.transactions >= OLD_TRANSACTIONS:
            yield Finding("old_snapshot", _held_by(snapshot), remedies[snapshot.kind] % {"statement": snapshot.ending})


def _held_by(snapshot: Snapshot) -> str:
    age = _("for %(age)s") % {"age": words(snapshot.age)} if snapshot.age else _("for a time that is not known")
    told = {
        "kind": {"session": _("Session"), "slot": _("Replication slot"), "prepared": _("Prepared transaction")}[
            snapshot.kind
        ],
        "name": snapshot.name,
        "who": ", ".join(filter(None, (snapshot.user, snapshot.program, snapshot.state))) or "?",
        "age": age,
        "transactions": snapshot.transactions,
    }
    return (
        _("%(kind)s %(name)s (%(who)s) has held back vacuum %(age)s, by %(transactions)d transactions: claiming slows.")
        % told
    )


def _bloat(found: Iterable[Bloat]) -> Iterator[Finding]:
    for table in found:
        if table.dead >= MANY_DEAD_ROWS and table.dead > table.live:
            ago = table.vacuumed_ago
            last = _("it was vacuumed %(age)s ago") % {"age": words(ago)} if ago else _("it was never vacuumed")
            yield Finding(
                "dead_rows",
                _("Table %(table)s has %(dead)d dead rows to %(live)d live ones; %(last)s.")
                % {"table": table.table, "dead": table.dead, "live": table.live, "last": last},
                _(
                    "Vacuum cannot keep up, or an old snapshot holds it back. End the snapshot; else run VACUUM "
                    "%(table)s, and lower autovacuum_vacuum_cost_delay for the table."
                )
                % {"table": table.table},
            )


def _clock(store: Store) -> Iterator[Finding]:
    difference = store.clock_difference()
    if abs(difference) >= CLOCK_DIFFERENCE:
        yield _skew(_("this host"), difference)
    for worker in store.skewed_workers(operate.silence(), CLOCK_DIFFERENCE):
        host = _("host %(host)s of worker %(worker)s") % {"host": worker.host, "worker": worker.name}
        yield _skew(host, worker.clock_ahead)


def _skew(host: str, ahead: timedelta) -> Finding:
    told = {"host": host, "difference": words(abs(ahead))}
    if ahead > timedelta():
        fact = _("The clock of %(host)s is %(difference)s ahead of the database's.") % told
    else:
        fact = _("The clock of %(host)s is %(difference)s behind the database's.") % told
    remedy = _("Leases do not mind; delays and times worked out there are off by as much. Let NTP set both clocks.")
    return Finding("clock", fact, remedy)


def words(span: timedelta) -> str:
    """Return a length of time in one or two units: "45 s", "3 min", "2 h 5 min", "4 d 1 h"."""
    seconds = round(span.total_seconds())
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    for (size, unit), (smaller, name) in pairwise(units):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{seconds} s"
