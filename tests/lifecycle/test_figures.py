"""Figures: sums and percentiles of the rollups."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_workqueue.lifecycle import figures
from django_workqueue.lifecycle.figures import RANGES, Times
from tests.factories import DeadLetterFactory, FinishedJobFactory, QueueMinuteFactory

pytestmark = pytest.mark.django_db


def minute(**ago):
    """Return a full minute that lies so long ago."""
    return (timezone.now() - timedelta(**ago)).replace(second=0, microsecond=0)


def histogram(**counts):
    """Return the stored text of counts by bucket: b3=5."""
    return ",".join(str(counts.get(f"b{place}", 0)) for place in range(32))


@pytest.mark.parametrize("period", RANGES)
def test_bars_cover_the_whole_range_and_lose_nothing(period):
    """The sum of the bars is the sum of the rollups, and an idle stretch is seen as one."""
    span, step = RANGES[period]
    QueueMinuteFactory(done=3, failed=1, minute=minute())
    QueueMinuteFactory(done=5, dead=2, minute=minute(seconds=span.total_seconds() / 2))
    QueueMinuteFactory(done=100, minute=minute(seconds=span.total_seconds() * 2))

    bars = figures.bars(period)

    assert len(bars) == span // step
    assert [sum(getattr(bar, name) for bar in bars) for name in ("done", "failed", "dead")] == [8, 1, 2]


def test_rollups_of_all_workers_are_added_up():
    """Each worker writes rows of its own."""
    now = minute()
    QueueMinuteFactory.create_batch(3, minute=now, done=2, run_histogram=histogram(b4=2))

    found = figures.figures("1h")

    [task] = found.tasks
    assert (task.passed.done, sum(task.runs.counts)) == (6, 6)
    assert task.runs.percentile(0.5) == timedelta(milliseconds=16)
    assert task.waits.percentile(0.5) is None
    assert not found.is_partial


def test_minute_that_is_still_to_come_counts_to_the_last_bar():
    """A worker whose clock is ahead must not break the page."""
    QueueMinuteFactory(done=7, minute=minute(minutes=-5))

    assert figures.bars("1h")[-1].done == 7


def test_one_queue_or_task_can_be_looked_at_alone():
    """The chart and the table tell of the same."""
    QueueMinuteFactory(queue="mail", task="a", done=3)
    QueueMinuteFactory(queue="mail", task="b", done=4)
    QueueMinuteFactory(queue="slow", task="a", done=5)

    found = figures.figures("1h", queue="mail", task="a")

    assert [(each.queue, each.task, each.passed.done) for each in found.tasks] == [("mail", "a", 3)]
    assert sum(bar.done for bar in found.bars) == 3


@pytest.mark.parametrize(("share", "bucket"), [(0.5, 0), (0.95, 5), (0.99, 10), (1.0, 10)])
def test_percentile_is_the_end_of_its_bucket(share, bucket):
    """So it is never told too low, and at most twice too high."""
    times = Times()
    times.add(histogram(b0=90, b5=8, b10=2))

    assert times.percentile(share) == timedelta(milliseconds=2**bucket)


def test_attempts_of_finished_and_dead_jobs_are_counted():
    """How often it takes more than one try."""
    FinishedJobFactory.create_batch(3, attempts=1)
    FinishedJobFactory(attempts=2)
    DeadLetterFactory(attempts=5)

    assert figures.figures("1h").attempts == {1: 3, 2: 1, 5: 1}


def test_more_rollups_than_are_read_are_told(monkeypatch):
    """The times are then those of the newest alone, the sums still of all."""
    monkeypatch.setattr("django_workqueue.store.survey.MINUTES_READ", 2)
    monkeypatch.setattr(figures, "MINUTES_READ", 2)
    QueueMinuteFactory.create_batch(3, run_histogram=histogram(b1=1))

    found = figures.figures("1h")

    assert (found.is_partial, sum(found.runs.counts), sum(bar.done for bar in found.bars)) == (True, 2, 3)
