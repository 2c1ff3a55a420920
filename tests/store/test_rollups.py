"""Rollups of minutes become those of hours: a month can be added up at once, and nothing is counted twice or lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.models import Sum
from django.utils import timezone

from django_workqueue.lifecycle import figures, operate
from django_workqueue.models import QueueMinute
from django_workqueue.store import store_for
from django_workqueue.store.rollups import KEPT_BY_MINUTE
from tests.factories import QueueMinuteFactory
from tests.racing import PATIENCE_SECONDS, race

from .explaining import explained
from .test_locks import wait_until_it_is_blocked

pytestmark = pytest.mark.django_db

TABLE = QueueMinute._meta.db_table


def hour(**ago):
    """Return the beginning of the hour that was so long ago."""
    return (timezone.now() - timedelta(**ago)).replace(minute=0, second=0, microsecond=0)


def fold(store=None, *, batch=1000):
    """Clean once, and return how many minutes were added to their hours."""
    made = store or store_for()
    return made.prune(batch=batch, dead_retention=None, statistics_retention=timedelta(days=31)).folded


def sums():
    """Return what all rollups add up to."""
    return tuple(QueueMinute.objects.aggregate(done=Sum("done"), failed=Sum("failed"), dead=Sum("dead")).values())


def test_minutes_of_an_hour_become_one_row_after_a_day(store):
    """Of all workers together, with the same sums."""
    begin = hour(days=3)
    for place in range(3):
        minute = begin + timedelta(minutes=20 * place)
        QueueMinuteFactory(minute=minute, done=2, failed=1, wait_histogram="1,2", run_histogram="0,0,3")
        QueueMinuteFactory(minute=minute, dead=1, wait_histogram="5", run_histogram="")

    assert fold(store) == 6

    [row] = QueueMinute.objects.all()
    assert (row.minute, row.is_hour, row.worker) == (begin, True, "")
    assert (row.done, row.failed, row.dead) == (9, 3, 3)
    assert (row.wait_histogram, row.run_histogram) == ("18,6", "0,0,9")


def test_hours_queues_and_tasks_stay_apart(store):
    """The statistics tell each."""
    begin = hour(days=3)
    QueueMinuteFactory(minute=begin)
    QueueMinuteFactory(minute=begin + timedelta(hours=1))
    QueueMinuteFactory(minute=begin, queue="mail")
    QueueMinuteFactory(minute=begin, task="shop.tasks.charge")

    assert fold(store) == 4
    assert QueueMinute.objects.filter(is_hour=True).count() == 4


def test_minutes_of_the_last_day_stay_minutes(store):
    """The bars of a day are shorter than an hour."""
    QueueMinuteFactory(minute=hour() - KEPT_BY_MINUTE + timedelta(hours=1, minutes=1))

    assert fold(store) == 0
    assert not QueueMinute.objects.get().is_hour


def test_minute_that_comes_late_is_added_to_its_hour(store):
    """A worker that could not reach the database for a day has still done what it did."""
    begin = hour(days=3)
    QueueMinuteFactory(minute=begin, done=2, run_histogram="1")
    fold(store)
    QueueMinuteFactory(minute=begin + timedelta(minutes=59), done=5, run_histogram="0,1")

    assert fold(store) == 1

    [row] = QueueMinute.objects.all()
    assert (row.done, row.run_histogram) == (7, "1,1")


def test_large_hour_is_added_up_in_small_steps(store):
    """However many workers there are, a transaction stays short."""
    for number in range(7):
        QueueMinuteFactory(minute=hour(days=3) + timedelta(minutes=number))

    assert [fold(store, batch=3) for _ in range(4)] == [3, 3, 1, 0]
    assert QueueMinute.objects.get().done == 7


def test_pruning_all_goes_on_until_no_minute_is_left_to_add():
    """The command does the whole of it, after an upgrade for instance."""
    for number in range(7):
        QueueMinuteFactory(minute=hour(days=3) + timedelta(minutes=number))

    assert operate.prunable().folded == 7
    assert operate.prune_all(batch=2).folded == 7
    assert operate.prunable().folded == 0


@pytest.mark.parametrize("period", ["7d", "30d"])
def test_long_ranges_add_up_hours_and_minutes(period):
    """The page of a week tells the same before and after."""
    QueueMinuteFactory(minute=hour(days=3), done=2, run_histogram="0,0,2", wait_histogram="2")
    QueueMinuteFactory(done=3, run_histogram="0,0,3", wait_histogram="3")
    before = figures.figures(period)

    assert fold() == 1

    assert figures.figures(period) == before
    assert sum(before.runs.counts) == 5


@pytest.mark.django_db(transaction=True)
def test_two_who_add_up_at_once_count_nothing_twice():
    """Every worker prunes, and none is the leader."""
    for number in range(240):
        QueueMinuteFactory.create(minute=hour(days=3) + timedelta(minutes=number), failed=2, dead=1)
    before = sums()

    race(*[lambda: [fold(batch=7) for _ in range(30)]] * 4)
    while fold():
        pass

    assert sums() == before
    assert QueueMinute.objects.filter(is_hour=True).count() == QueueMinute.objects.count() == 4


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_hour_that_another_has_just_begun_is_left_for_the_next_round():
    """Its sums are not known yet, and writing over them would lose what the other has counted."""
    begin = hour(days=3)
    QueueMinuteFactory(minute=begin, done=2)

    def late():
        try:
            QueueMinuteFactory(minute=begin, done=5)
            return fold()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            fold()
            waiting = pool.submit(late)
            wait_until_it_is_blocked(waiting)
        assert waiting.result(PATIENCE_SECONDS) == 0

    assert fold() == 1
    assert sums()[0] == 7
    assert QueueMinute.objects.count() == 1


@pytest.mark.postgresql
def test_minutes_to_add_up_are_found_behind_months_of_hours(monkeypatch, store):
    """Looking for them every minute must not read what was added up long ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {TABLE} (minute, queue, task, worker, is_hour, done, failed, dead, wait_histogram, "
            "run_histogram) SELECT now() - interval '2 days' - n * interval '1 hour', 'q' || n % 50, 't' || n, '', "
            "true, 1, 0, 0, '', '' FROM generate_series(1, 20000) n"
        )
    QueueMinuteFactory(minute=hour(days=3))

    with explained(monkeypatch, TABLE) as plans:
        assert store._fold_minutes(100, timedelta(days=31)) == 1

    assert "dwq_minute_single" in plans[0].indexes(TABLE)
    assert plans[0].buffers <= 20
