"""Counting: for the queues' counters, which are added to, and for the rollups, which are written whole."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from django_workqueue.domain.outcomes import Bury, Cancel, Cancelled, Retry, Settlement, Succeeded
from django_workqueue.domain.states import DeathReason
from django_workqueue.store.watch import QueueCounts
from django_workqueue.worker.tally import Tally, memory_bytes
from tests.claims import EXACT
from tests.racing import race

from .jobs import broken, done, job

RETRY, BURY = Retry(timedelta()), Bury(DeathReason.EXHAUSTED)


def test_successes_failures_and_deaths_are_counted_by_queue():
    """A dead job failed too."""
    tally = Tally("w")
    tally.add_done([done(job()), done(job(queue="mail"))])
    tally.add_failed(broken(job()), RETRY)
    tally.add_failed(broken(job()), BURY)

    assert (tally.done, tally.failed) == (2, 2)
    assert tally.take_counts() == {"default": QueueCounts(done=1, failed=2, dead=1), "mail": QueueCounts(done=1)}
    assert tally.take_counts() == {}


def test_counts_that_could_not_be_written_are_counted_again():
    """On top of what came meanwhile."""
    tally = Tally("w")
    tally.add_done([done(job())])
    taken = tally.take_counts()
    tally.add_done([done(job())])
    tally.give_back(taken)

    assert tally.take_counts() == {"default": QueueCounts(done=2)}


def test_rollup_is_by_queue_task_and_minute():
    """One row for each."""
    tally = Tally("w")
    with time_machine.travel("2026-03-01 12:00:30+00:00", tick=False):
        tally.add_done([done(job()), done(job()), done(job(task="tests.samples.send"))])
    with time_machine.travel("2026-03-01 12:01:00+00:00", tick=False):
        tally.add_failed(broken(job()), BURY)

    rows = [(f"{row.minute:%H:%M}", row.task, row.done, row.failed, row.dead) for row in tally.minutes()]
    assert rows == [
        ("12:00", "tests.samples.add", 2, 0, 0),
        ("12:00", "tests.samples.send", 1, 0, 0),
        ("12:01", "tests.samples.add", 0, 1, 1),
    ]
    assert {row.worker for row in tally.minutes()} == {"w"}


def test_rollup_is_offered_until_it_was_written():
    """A failed write loses nothing."""
    tally = Tally("w")
    tally.add_done([done(job())])

    assert len(tally.minutes()) == len(tally.minutes()) == 1
    tally.written(tally.minutes())
    assert tally.minutes() == []


def test_rollup_that_changed_while_it_was_written_is_written_again():
    """Whole, so that the second write replaces the first."""
    tally = Tally("w")
    tally.add_done([done(job())])
    rows = tally.minutes()
    tally.add_done([done(job())])
    tally.written(rows)

    rows = tally.minutes()
    assert [row.done for row in rows] == [2]
    # An attempt that was cancelled is neither done nor failed. It took its time.
    tally.add_failed(Settlement(job(), Cancelled(), EXACT), Cancel())
    tally.written(rows)
    assert [row.run_histogram[0] for row in tally.minutes()] == ["1"]


def test_minutes_that_are_over_are_forgotten_once_they_are_written():
    """A worker runs for months."""
    tally = Tally("w")
    with time_machine.travel("2026-03-01 12:00:30+00:00", tick=False):
        tally.add_done([done(job())])
    with time_machine.travel("2026-03-01 12:02:00+00:00", tick=False):
        assert len(tally._minutes) == 1
        tally.written(tally.minutes())

    assert tally._minutes == {}


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (0.0009, 0), (0.001, 1), (0.003, 2), (1.0, 10), (1e9, 31), (-5, 0)]
)
def test_runs_are_counted_by_powers_of_two_of_milliseconds(seconds, bucket):
    """From below a millisecond to years."""
    tally = Tally("w")
    tally.add_done([Settlement(job(), Succeeded("null", seconds), EXACT)])

    histogram = list(map(int, tally.minutes()[0].run_histogram.split(",")))
    assert (sum(histogram), histogram[bucket]) == (1, 1)


def test_waits_are_counted_from_readiness_to_the_start():
    """Without the run itself."""
    tally = Tally("w")
    ready = timezone.now() - timedelta(seconds=3)
    tally.add_done([Settlement(job(ready_at=ready), Succeeded("null", 2.0), EXACT)])

    histogram = list(map(int, tally.minutes()[0].wait_histogram.split(",")))
    assert histogram[10] == 1


def test_counting_in_several_threads_loses_nothing():
    """The dispatcher counts while maintenance takes."""
    tally, taken = Tally("w"), []

    def count():
        for _ in range(300):
            tally.add_done([done(job())])

    def take():
        taken.extend(tally.take_counts().get("default", QueueCounts()).done for _ in range(100))

    race(count, count, take)

    assert sum(taken) + tally.take_counts().get("default", QueueCounts()).done == tally.done == 600


def test_memory_of_the_process_is_told():
    """In bytes."""
    assert 10_000_000 < memory_bytes() < 100_000_000_000
