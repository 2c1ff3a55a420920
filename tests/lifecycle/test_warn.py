"""Warnings: each tells a fact with its values and what to do about it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import InternalError, connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from django_workqueue.domain.states import FailureKind
from django_workqueue.lifecycle import warn
from django_workqueue.models import Job
from django_workqueue.store import store_for
from django_workqueue.store.survey import Bloat, Snapshot
from tests.factories import FailureFactory, JobFactory, ScheduleFactory, WorkerFactory, ago

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _quiet_server(request, monkeypatch):
    """Leave out what other sessions on the test server do, unless a test is about it."""
    if request.node.get_closest_marker("postgresql") is None:
        monkeypatch.setattr(type(store_for()), "snapshots", lambda _self: [])
        monkeypatch.setattr(type(store_for()), "bloat", lambda _self: [])


def kinds():
    """Return the words of all that is wrong."""
    return [each.kind for each in warn.warnings()]


def only():
    """Return the one thing that is wrong."""
    [found] = warn.warnings()
    return found


def test_nothing_is_wrong_with_an_idle_queue():
    """A warning that is always there is read by nobody."""
    WorkerFactory(queues="*")
    JobFactory(task="tests.samples.add")

    assert warn.warnings() == []


def test_work_without_a_worker_is_told_with_its_age():
    """A misspelt queue is seen before somebody misses its work (usnistgov/dioptra#866)."""
    JobFactory.create_batch(2, queue="defualt", task="tests.samples.add")
    WorkerFactory(queues="default")

    found = only()

    assert found.kind == "unserved"
    assert "defualt has 2 ready jobs, the oldest for 2 min" in found.fact
    assert "runworkers --queues defualt" in found.remedy


def test_silent_worker_is_named_with_its_host():
    """So that somebody knows where to look."""
    WorkerFactory(silent=True, name="web7", host="shop-7")

    found = only()

    assert (found.kind, "web7 on shop-7" in found.fact, "10 min" in found.fact) == ("silent_worker", True, True)


def test_task_that_the_code_does_not_have_is_named():
    """Its jobs die one after the other after a rename."""
    WorkerFactory(queues="*")
    JobFactory.create_batch(3, task="shop.tasks.gone")

    found = only()

    assert (found.kind, "3 of the newest" in found.fact, "ALIASES" in found.remedy) == ("unknown_task", True, True)


def test_schedules_that_are_late_or_at_fault_are_told():
    """One that is due this second is neither."""
    ScheduleFactory(due=True)
    ScheduleFactory(name="report", next_at=ago(minutes=20))
    ScheduleFactory(name="off", next_at=ago(minutes=20), enabled=False)
    ScheduleFactory(name="broken", fault="no such task")

    found = warn.warnings()

    assert [(each.kind, name in each.fact) for each, name in zip(found, ["report", "broken"], strict=True)] == [
        ("late_schedule", True),
        ("faulty_schedule", True),
    ]


def test_leases_lost_lately_are_counted():
    """Those of yesterday and ordinary errors are not."""
    FailureFactory.create_batch(2, kind=FailureKind.LAPSED, failed_at=ago(minutes=5))
    FailureFactory(kind=FailureKind.LAPSED, failed_at=ago(hours=5))
    FailureFactory(kind=FailureKind.ERROR, failed_at=ago(minutes=5))

    found = only()

    assert (found.kind, found.fact) == ("lost_leases", "2 attempts were lost with their leases in the last hour.")


def test_migration_that_is_not_applied_is_named():
    """New workers wait for it, and say so in their log alone."""
    MigrationRecorder(connection).record_unapplied("django_workqueue", "0001_initial")

    found = only()

    assert (found.kind, "0001_initial" in found.fact, "migrate" in found.remedy) == ("migration", True, True)


def test_clock_that_is_off_is_told(monkeypatch):
    """Delays worked out by such a host are off by as much."""
    monkeypatch.setattr(type(store_for()), "clock_difference", lambda _self: timedelta(seconds=-90))

    found = only()

    assert (found.kind, "1 min 30 s" in found.fact or "1 min" in found.fact, "behind" in found.fact) == (
        "clock",
        True,
        True,
    )


def test_clock_of_a_workers_host_is_judged_by_its_last_beat():
    """By the row, for nobody can ask a host from here; small differences are those of the way to the server."""
    WorkerFactory(name="fast", host="shop-7", clock_ahead=timedelta(minutes=3))
    WorkerFactory(name="slow", host="shop-8", clock_ahead=timedelta(minutes=-3))
    WorkerFactory(name="well", host="shop-9", clock_ahead=timedelta(milliseconds=-40))

    facts = [each.fact for each in warn.warnings()]

    assert facts == [
        "The clock of host shop-7 of worker fast is 3 min ahead of the database's.",
        "The clock of host shop-8 of worker slow is 3 min behind the database's.",
    ]


@pytest.mark.parametrize(
    ("snapshot", "remedy"),
    [
        (
            Snapshot("session", "17", "olga", "psql", "idle in transaction", timedelta(hours=2), 5),
            "terminate_backend(17)",
        ),
        (Snapshot("slot", "replica", "", "", "inactive", None, 2_000_000), "drop_replication_slot('replica')"),
        (Snapshot("prepared", "gid", "olga", "", "prepared", timedelta(days=1), 5), "ROLLBACK PREPARED 'gid'"),
    ],
)
def test_holder_of_an_old_snapshot_is_named_with_the_way_to_end_it(monkeypatch, snapshot, remedy):
    """It is the most frequent reason why a queue in PostgreSQL slows down (brandur.org/postgres-queues)."""
    monkeypatch.setattr(type(store_for()), "snapshots", lambda _self: [snapshot])

    found = only()

    assert (found.kind, remedy in found.remedy) == ("old_snapshot", True)
    assert snapshot.name in found.fact


def test_short_transaction_is_no_warning(monkeypatch):
    """Every statement holds a snapshot for a while."""
    young = Snapshot("session", "17", "olga", "psql", "active", timedelta(seconds=5), 10)
    monkeypatch.setattr(type(store_for()), "snapshots", lambda _self: [young])

    assert warn.warnings() == []


def test_table_of_dead_rows_is_named(monkeypatch):
    """With the number of its live ones beside."""
    tables = [Bloat("jobs", 10, 900_000, None), Bloat("leases", 1_000_000, 60_000, timedelta(minutes=1))]
    monkeypatch.setattr(type(store_for()), "bloat", lambda _self: tables)

    found = only()

    assert (found.kind, "900000 dead rows to 10 live ones; it was never vacuumed" in found.fact) == ("dead_rows", True)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (150, "2 min 30 s"), (3600, "1 h"), (90_000, "1 d 1 h")],
)
def test_lengths_of_time_are_told_in_words(seconds, told):
    """Nobody divides by 86,400 at night."""
    assert warn.words(timedelta(seconds=seconds)) == told


@pytest.mark.postgresql
def test_server_tells_who_holds_a_snapshot():
    """A session that forgot its transaction is found with its process id, program and state."""
    other = connections.create_connection("default")
    other.settings_dict = {**connection.settings_dict, "OPTIONS": {"application_name": "forgetful"}}
    other.connect()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT pg_backend_pid(), count(*) FROM pg_class")
            pid = cursor.fetchone()[0]
            found = {each.name: each for each in store_for().snapshots(limit=100)}
    finally:
        other.close()

    held = found[str(pid)]
    assert (held.kind, held.program, held.state) == ("session", "forgetful", "idle in transaction")
    assert held.age is not None


@pytest.mark.postgresql
def test_server_tells_the_dead_rows_of_the_hot_tables():
    """By its own statistics: no table is scanned."""
    assert Job._meta.db_table in {each.table for each in store_for().bloat()}


@pytest.mark.postgresql
def test_looking_cannot_lock_a_row():
    """The server itself refuses, and the caller's transaction goes on as it was."""
    store = store_for()
    JobFactory()

    with pytest.raises(InternalError, match="read-only"), store.looking(timedelta(seconds=5)):
        list(Job.objects.select_for_update())
    with store.looking(timedelta(seconds=5)):
        assert Job.objects.count() == 1

    assert Job.objects.update(ready_at=timezone.now()) == 1
