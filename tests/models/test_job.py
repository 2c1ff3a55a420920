"""What the table of live jobs refuses by itself, and the words to read it by."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from django_workqueue.domain.states import JobState
from django_workqueue.models import DeadLetter, FinishedJob, Job, Lease
from django_workqueue.models.base import COPIED
from tests.factories import (
    DeadLetterFactory,
    FailureFactory,
    FinishedJobFactory,
    JobFactory,
    LeaseFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "columns",
    [
        {"priority": 101},
        {"priority": -101},
        {"state": JobState.LEASED, "lease_id": None},
        {"state": JobState.READY, "lease_id": 1},
        {"state": JobState.SCHEDULED, "lease_id": 1},
        {"state": "paused"},
        {"attempts": -1},
    ],
)
def test_impossible_row_is_refused(columns):
    """A hand that edits rows cannot make a job that nobody finds."""
    with pytest.raises(IntegrityError), transaction.atomic():
        JobFactory(**columns)


def test_key_is_unique_within_queue_and_tenant():
    """Of jobs that wait or run."""
    JobFactory(dedupe_key="k")
    JobFactory(dedupe_key="k", tenant="acme")
    JobFactory(dedupe_key="k", queue="mail")
    JobFactory.create_batch(2, dedupe_key=None)

    with pytest.raises(IntegrityError), transaction.atomic():
        JobFactory(dedupe_key="k", leased=True)


def test_key_that_is_free_from_the_start_is_unique_among_waiting_jobs():
    """Any number may run."""
    until_start = {"dedupe_key": "k", "dedupe_until_start": True}
    JobFactory(**until_start, leased=True)
    JobFactory(**until_start, leased=True)
    JobFactory(**until_start)

    with pytest.raises(IntegrityError), transaction.atomic():
        JobFactory(**until_start, scheduled=True)


@pytest.mark.parametrize("priority", [-100, -1, 0, 100])
def test_rank_is_minus_the_priority(priority):
    """The most urgent comes first in an ascending index."""
    assert Job.objects.get(pk=JobFactory(priority=priority).pk).rank == -priority


def test_reading_words_select_by_state():
    """Each state has its word."""
    ready, scheduled, leased = JobFactory(), JobFactory(scheduled=True), JobFactory(leased=True)

    assert list(Job.objects.ready()) == [ready]
    assert list(Job.objects.scheduled()) == [scheduled]
    assert list(Job.objects.leased()) == [leased]


def test_expired_leases_are_those_whose_time_has_come(store):
    """At the very moment too."""
    lapsed, alive = LeaseFactory(lapsed=True), LeaseFactory()

    assert list(Lease.objects.expired(store.now())) == [lapsed]
    assert list(Lease.objects.expired(alive.expires_at)) == [lapsed, alive]


def test_stored_text_is_decoded_when_it_is_asked_for():
    """A damaged row can still be shown."""
    job = JobFactory(args="[1]", kwargs='{"a":2}', metadata='{"b":3}')
    assert (job.decoded_args, job.decoded_kwargs, job.decoded_metadata) == ([1], {"a": 2}, {"b": 3})
    job.args = "{broken"

    with pytest.raises(ValueError, match=r"."):
        job.decoded_args  # noqa: B018 - reading is what raises


@pytest.mark.parametrize("model", [Job, FinishedJob, DeadLetter])
def test_job_has_the_same_columns_wherever_it_is(model):
    """They are copied as they are when it moves."""
    assert set(COPIED) <= {field.attname for field in model._meta.concrete_fields}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (JobFactory, "shop.tasks.send_receipt"),
        (FinishedJobFactory, "shop.tasks.send_receipt"),
        (DeadLetterFactory, "shop.tasks.send_receipt"),
        (FailureFactory, "attempt 1: builtins.ValueError"),
        (LeaseFactory, "of web1:1:5f3a"),
        (WorkerFactory, "web1:"),
    ],
)
def test_rows_can_be_told_apart(make, words):
    """In the admin and in a shell."""
    assert words in str(make())
