"""``advance`` lets time pass for the queue, with what workers would have done by then."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_workqueue.domain.states import FailureKind, JobState
from django_workqueue.models import DeadLetter, Failure, Job
from tests.claims import claim_one

from . import sample_tasks as tasks

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("hour", [3600, 3600.0, timedelta(hours=1)])
def test_deferred_job_comes_due(workqueue, hour):
    """Not before its time, and then it is ready."""
    tasks.note.using(run_after=timedelta(hours=1, seconds=10)).enqueue("later")

    workqueue.advance(hour)
    assert Job.objects.get().state == JobState.SCHEDULED

    workqueue.advance(10)
    assert Job.objects.get().state == JobState.READY


def test_lapsed_lease_is_reaped(workqueue, store):
    """The job of a lost worker comes back, and its history says so."""
    tasks.note.enqueue("again")
    claim_one(store, lease=timedelta(seconds=30))

    workqueue.advance(29)
    assert Job.objects.get().state == JobState.LEASED

    workqueue.advance(2)
    assert Job.objects.get().state == JobState.READY
    assert Failure.objects.get().kind == FailureKind.LAPSED


def test_lapse_of_the_last_attempt_makes_a_dead_letter(workqueue, store):
    """As it would in production by then."""
    tasks.note.using(max_attempts=1).enqueue("again")
    claim_one(store)

    workqueue.advance(31)

    assert DeadLetter.objects.get().attempts == 1


def test_process_keeps_its_time(workqueue):
    """Only rows are moved: what the test compares with ``timezone.now()`` is not."""
    before = timezone.now()

    workqueue.advance(86_400)

    assert timezone.now() - before < timedelta(hours=1)


def test_nothing_runs(workqueue, done):
    """Running jobs is for ``drain``."""
    tasks.note.using(run_after=timedelta(hours=1)).enqueue("later")

    workqueue.advance(7200)

    assert done == []
    workqueue.drain()
    assert done == ["later"]
