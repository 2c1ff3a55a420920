"""What workers report of themselves, and what the statistics make of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_workqueue.models import Queue, QueueMinute, Worker
from django_workqueue.models.worker import WorkerState
from django_workqueue.store import watch
from django_workqueue.store.watch import Beat, QueueCounts
from tests.claims import claim_one
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, QueueFactory, WorkerFactory, ago

pytestmark = pytest.mark.django_db


def stats(store, **workers):
    """Return the statistics by queue; ``workers`` says how many serve each."""
    return {row.queue: row for row in store.stats(lambda name: workers.get(name, 0))}


def test_worker_reports_itself(store):
    """Its start, its beats and its end, by the database's clock."""
    store.register_worker(WorkerFactory.build(id="w"))
    assert abs(store.now() - Worker.objects.get().seen_at) < timedelta(seconds=10)
    store.shift(60)

    assert store.beat_worker("w", Beat(WorkerState.STOPPING, memory_bytes=5, running=2, done=7, failed=1))

    row = Worker.objects.get()
    assert abs(store.now() - row.seen_at) < timedelta(seconds=10)
    assert (row.state, row.memory_bytes, row.running, row.done, row.failed) == (WorkerState.STOPPING, 5, 2, 7, 1)
    store.retire_worker("w")
    assert not Worker.objects.exists()


def test_worker_reports_by_how_much_its_clock_is_off(store, monkeypatch):
    """Nobody else can see the clock of its host."""
    moment = timezone.now()
    store.register_worker(WorkerFactory.build(id="w"))
    assert abs(Worker.objects.get().clock_ahead) < timedelta(minutes=1)

    # Where the database is in this process, its clock is this one too.
    monkeypatch.setattr(type(store), "clock", lambda _self: moment)
    monkeypatch.setattr(timezone, "now", lambda: moment + timedelta(hours=1))
    store.beat_worker("w", Beat(WorkerState.RUNNING, memory_bytes=5, running=2, done=7, failed=1))

    assert timedelta(minutes=59) < Worker.objects.get().clock_ahead < timedelta(minutes=61)


def test_beat_of_a_worker_whose_row_is_gone_says_so(store):
    """It registers anew then."""
    assert not store.beat_worker("w", Beat(WorkerState.RUNNING, 0, 0, 0, 0))


def test_silent_worker_is_not_alive(store):
    """Its row may still be there."""
    WorkerFactory(silent=True)
    alive = WorkerFactory(queues="mail,!spam")

    assert [(worker.id, worker.queues) for worker in store.live_workers(timedelta(seconds=30))] == [
        (alive.pk, "mail,!spam")
    ]


def test_counters_only_grow(store):
    """Additions of many workers add up, also for a queue that has no row yet."""
    store.add_counts({"mail": QueueCounts(done=2, failed=1), "default": QueueCounts(reaped=1)})
    store.add_counts({"mail": QueueCounts(done=3, dead=1)})

    mail = Queue.objects.get(pk="mail")
    assert (mail.done, mail.failed, mail.dead, mail.reaped) == (5, 1, 1, 0)
    assert Queue.objects.get(pk="default").reaped == 1


def test_rollup_that_is_written_again_replaces_itself(store):
    """A repeat after a lost answer counts nothing twice."""
    minute = store.now().replace(second=0, microsecond=0)
    for done in (1, 5):
        store.write_minutes(
            [QueueMinute(queue="q", task="t", minute=minute, worker="w", done=done, run_histogram="0,1")]
        )
    store.write_minutes([QueueMinute(queue="q", task="t", minute=minute, worker="other", done=2)])

    assert sorted(QueueMinute.objects.values_list("worker", "done")) == [("other", 2), ("w", 5)]


# -- statistics --------------------------------------------------------------------------------------------------------


def test_depth_and_counts_tell_what_is_where(store):
    """Waiting, scheduled, held and dead, each queue for itself."""
    JobFactory.create_batch(3)
    JobFactory.create_batch(2, scheduled=True)
    JobFactory(leased=True)
    DeadLetterFactory()
    FinishedJobFactory()
    JobFactory(queue="mail")

    found = stats(store)

    assert set(found) == {"default", "mail"}
    row = found["default"]
    assert (row.ready, row.scheduled, row.leased, row.dead, row.depth) == (3, 2, 1, 1, 5)
    assert found["mail"].depth == 1


def test_claimed_job_no_longer_waits(store):
    """Two in, one claimed: depth 1, held 1."""
    JobFactory.create_batch(2)
    claim_one(store)

    row = stats(store)["default"]
    assert (row.depth, row.leased) == (1, 1)


def test_depth_never_stands_without_age(store):
    """The oldest ready job of any lane and priority counts; nothing waits: nothing is old."""
    QueueFactory(name="empty")
    JobFactory(priority=50, ready_at=ago(seconds=10))
    JobFactory(priority=-50, tenant="a", ready_at=ago(minutes=10))
    JobFactory(priority=0, tenant="a", ready_at=ago(seconds=1))
    JobFactory(scheduled=True, queue="later")

    found = stats(store)

    assert found["default"].oldest_age_seconds == pytest.approx(600, abs=10)
    assert (found["empty"].oldest_age_seconds, found["later"].oldest_age_seconds) == (0.0, 0.0)


def test_queue_with_waiting_jobs_and_no_worker_is_flagged(store):
    """A misspelt queue is seen before somebody misses its work (usnistgov/dioptra#866)."""
    JobFactory(queue="defualt")
    JobFactory(queue="mail")
    JobFactory(queue="stopped")
    QueueFactory(name="stopped", paused=True)

    found = stats(store, mail=1)

    assert {name: row.unserved for name, row in found.items()} == {"defualt": True, "mail": False, "stopped": False}
    assert found["defualt"].oldest_age_seconds > 60
    assert found["stopped"].paused


def test_counts_stop_at_their_cap_and_say_so(store, monkeypatch):
    """A full count over a backlog would be the biggest load on the database (hexpm/hexpm PR#1773)."""
    monkeypatch.setattr(watch, "COUNT_CAP", 5)
    JobFactory.create_batch(7)
    JobFactory.create_batch(2, scheduled=True)

    row = stats(store)["default"]

    assert (row.ready, row.scheduled) == (5, 2)
    assert row.capped == {"ready"}


def test_queue_behind_the_cap_is_listed_all_the_same(store, monkeypatch):
    """The walk over ready queues finds it."""
    monkeypatch.setattr(watch, "COUNT_CAP", 3)
    JobFactory.create_batch(5)
    JobFactory(queue="zebra")

    assert "zebra" in stats(store)


def test_cumulative_counters_are_told(store):
    """They come from the queue's row."""
    QueueFactory(name="mail", done=5, failed=4, dead=3, reaped=2, duplicates=1)

    row = stats(store, mail=2)["mail"]

    assert (row.done, row.failed, row.died, row.reaped, row.duplicates) == (5, 4, 3, 2, 1)
    assert row.workers == 2


def test_number_of_queries_does_not_grow_with_the_jobs(store, django_assert_max_num_queries):
    """One lane or many jobs: the page costs the same."""
    JobFactory.create_batch(30)

    with django_assert_max_num_queries(15):
        stats(store)
