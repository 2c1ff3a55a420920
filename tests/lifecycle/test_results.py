"""Results: where a job is found, and what Django's words say of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.domain.contract import TaskResultDoesNotExist, TaskResultStatus
from django_workqueue.lifecycle.results import load
from django_workqueue.models import FinishedJob, Job
from tests import samples
from tests.claims import bury, claim_one, complete, fail, put_back
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory

pytestmark = pytest.mark.django_db

TASK = "tests.samples.add"


@pytest.mark.parametrize(
    ("make", "status"),
    [
        (lambda: JobFactory(task=TASK), TaskResultStatus.READY),
        (lambda: JobFactory(task=TASK, scheduled=True), TaskResultStatus.READY),
        (lambda: JobFactory(task=TASK, leased=True), TaskResultStatus.RUNNING),
        (lambda: FinishedJobFactory(task=TASK), TaskResultStatus.SUCCESSFUL),
        (lambda: FinishedJobFactory(task=TASK, cancelled=True), TaskResultStatus.FAILED),
        (lambda: DeadLetterFactory(task=TASK), TaskResultStatus.FAILED),
    ],
    ids=["ready", "scheduled", "leased", "succeeded", "cancelled", "dead"],
)
def test_every_place_has_its_status(store, make, status):
    """A job is in one of them at every instant."""
    row = make()

    result = load(store, str(row.pk), "default")

    assert (result.id, result.status) == (str(row.pk), status)
    assert load(store, row.pk, "default").id == result.id


def test_attempts_are_told_in_their_order(store):
    """Workers, first start and last start, over failures, a lapse and the end."""
    result = samples.add.enqueue(1, 2)
    fail(store, claim_one(store))
    claim_one(store, worker="worker-2")
    store.shift(31)
    store.reap(put_back)
    complete(store, claim_one(store, worker="worker-3"), worker="worker-3")

    result.refresh()

    assert result.worker_ids == ["worker-1", "worker-2", "worker-3"]
    assert result.attempts == 3
    assert len(result.errors) == 2
    assert result.started_at < result.last_attempted_at <= result.finished_at


def test_enqueued_time_is_the_first_one(store):
    """Retries do not change when it was asked for."""
    result = samples.add.enqueue(1, 2)
    before = result.enqueued_at
    fail(store, claim_one(store))
    bury(store, claim_one(store))

    result.refresh()

    assert result.enqueued_at == before


def test_job_that_moves_while_it_is_looked_for_is_found(store, monkeypatch):
    """The tables are read one after the other."""
    result = samples.add.enqueue(1, 2)
    job = claim_one(store)
    real = FinishedJob.objects.all
    moves = []

    def move_first():
        if not moves:
            moves.append(complete(store, job))
        return real()

    monkeypatch.setattr(FinishedJob.objects, "all", move_first)

    assert load(store, result.id, "default").status in {TaskResultStatus.RUNNING, TaskResultStatus.SUCCESSFUL}


def test_requeued_job_is_ready_again_with_its_history(store):
    """And no longer failed."""
    letter = DeadLetterFactory(task=TASK, failures=5)
    store.requeue(letter.pk, attempts=1)

    result = load(store, letter.pk, "default")

    assert (result.status, len(result.errors), result.finished_at) == (TaskResultStatus.READY, 5, None)


def test_result_is_read_in_few_queries(store, django_assert_max_num_queries):
    """Four at most, wherever the job is."""
    letter = DeadLetterFactory(task=TASK, failures=3)

    with django_assert_max_num_queries(4):
        load(store, letter.pk, "default")


def test_result_follows_an_alias(store, settings):
    """A task that was renamed still has its results."""
    settings.WORKQUEUE = {"ALIASES": {"shop.old.add": TASK}}
    row = JobFactory(task="shop.old.add")

    assert load(store, row.pk, "default").task == samples.add


def test_expired_result_is_told_apart_from_nothing(store):
    """The error says that it may have been pruned."""
    result = samples.add.enqueue(1, 2)
    Job.objects.all().delete()

    with pytest.raises(TaskResultDoesNotExist, match="retention"):
        result.refresh()


def test_duplicate_tells_the_state_of_the_job_that_was_there(store):
    """It may be running already."""
    samples.bill.enqueue(7)
    claim_one(store)

    assert samples.bill.enqueue(7).status == TaskResultStatus.RUNNING


def test_deferred_result_is_ready(store):
    """``django.tasks`` has no word for waiting on a time."""
    assert samples.add.using(run_after=timedelta(hours=1)).enqueue(1, 2).status == TaskResultStatus.READY
