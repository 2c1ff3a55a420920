"""The history of schedules: what each firing came to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.lifecycle.schedule import review, tick
from django_workqueue.models import Firing, Job, Schedule
from tests.factories import ScheduleFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(store):
    """Return a schedule that was planned."""
    row = ScheduleFactory()
    review(store)
    return row


def fire(store, row, *, late=timedelta(seconds=1)):
    """Let a firing have come so long ago, and carry it out."""
    Schedule.objects.filter(pk=row.pk).update(next_at=store.now() - late)
    tick(store)


def test_history_tells_of_each_firing_what_it_came_to(store, row):
    """Which job it enqueued and when it was due; or for which live job it was skipped."""
    fire(store, row, late=timedelta(minutes=3))
    fire(store, row)

    first, second = Firing.objects.order_by("id")
    job = Job.objects.get()
    assert (first.schedule, first.job_id, first.skipped) == (row, job.pk, False)
    assert timedelta(minutes=2) < first.fired_at - first.due_at < timedelta(minutes=5)
    assert (second.job_id, second.skipped) == (job.pk, True)


def test_history_ends_with_its_schedule(store, row):
    """It is of no use without."""
    fire(store, row)

    store.delete_schedule(row.pk)

    assert not Firing.objects.exists()
