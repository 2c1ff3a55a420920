"""Cancel: what becomes of a job that nobody wants any more, and who is told."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.db import OperationalError, transaction

from django_workqueue.domain.contract import TaskResultStatus, task_finished
from django_workqueue.domain.ids import new_id
from django_workqueue.domain.outcomes import Bury, Cancel, Cancelled, Settlement
from django_workqueue.domain.states import DeathReason, FailureKind, JobState
from django_workqueue.lifecycle import operate, settle
from django_workqueue.lifecycle.claim import _without_paused
from django_workqueue.lifecycle.reap import reap, rescue
from django_workqueue.models import DeadLetter, FinishedJob, Job, Lease, Queue
from tests import samples
from tests.claims import EXACT, claim_one, failed
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told():
    """Collect what is told about jobs that are over."""
    results = []

    def receiver(task_result, **_facts):
        results.append((task_result.id, task_result.status, task_result.worker_ids))

    task_finished.connect(receiver)
    yield results
    task_finished.disconnect(receiver)


def running(store):
    """Return a job of a known task that runs and is to be cancelled."""
    samples.add.enqueue(1, 2)
    job = claim_one(store)
    operate.cancel([job.id])
    return job


def said(caplog):
    """Return what we said; Django's contract says something of its own."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("django_workqueue.")]


def end(store, settlement):
    """Settle an attempt."""
    return settle.fail(store, settlement, worker="web1:4", last=True)


# -- operate.cancel ----------------------------------------------------------------------------------------------------


def test_report_says_what_became_of_each(store):
    """Over at once, asked to end, or not there; one does not stop the others."""
    runs, waits, missing = JobFactory(), JobFactory(scheduled=True, tenant="acme"), new_id()
    claim_one(store)

    done = operate.cancel([missing, runs.pk, waits.pk])

    assert (done.cancelled, done.requested) == ([waits.pk], [runs.pk])
    assert [(refusal.job_id, str(missing) in refusal.problem) for refusal in done.refused] == [(missing, True)]


def test_other_tenants_jobs_are_not_found():
    """As if they were not there."""
    job = JobFactory(tenant="acme")

    assert operate.cancel([job.pk], tenant="other").refused
    assert operate.cancel([job.pk], tenant="acme").cancelled == [job.pk]


def test_cancel_is_told_counted_and_logged_once_it_is_committed(told, caplog):
    """Not before: it may be rolled back. Arguments are nowhere in the log."""
    result = samples.add.enqueue(17, 4)
    with caplog.at_level(logging.INFO), transaction.atomic():
        operate.cancel([result.id])
        assert told == []

    assert told == [(result.id, TaskResultStatus.FAILED, [])]
    assert Queue.objects.get(pk="default").cancelled == 1
    assert said(caplog) == [f"Job {result.id} of tests.samples.add was cancelled."]
    assert result.id == caplog.records[0].job_id


def test_cancelled_job_of_an_unknown_task_is_told_to_nobody(told):
    """There is no task to describe."""
    operate.cancel([JobFactory(task="tests.samples.was_here_once").pk])

    assert told == []
    assert FinishedJob.objects.exists()


def test_request_that_cannot_be_passed_on_stands_all_the_same(store, monkeypatch, caplog):
    """The worker looks by itself."""
    samples.add.enqueue(1, 2)
    job = claim_one(store)

    def break_off(_store, _lease_ids):
        raise OperationalError("gone")

    monkeypatch.setattr(type(store), "call_to_cancel", break_off)
    operate.cancel([job.id])

    assert store.cancel_requests([job.lease_id])
    assert "Could not tell the worker" in caplog.text


# -- after the request -------------------------------------------------------------------------------------------------


def test_attempt_that_ends_as_cancelled_is_over(store, told, caplog):
    """As a job without a failure, told with the worker that ran it."""
    job = running(store)
    with caplog.at_level(logging.INFO, "django_workqueue.settle"):
        assert end(store, Settlement(job, Cancelled(0.5), EXACT)) == Cancel()

    assert told == [(str(job.id), TaskResultStatus.FAILED, ["web1:4"])]
    assert said(caplog) == [f"Job {job.id} of tests.samples.add was cancelled in attempt 1."]


@pytest.mark.parametrize("kind", [FailureKind.ERROR, FailureKind.TIMEOUT])
def test_job_that_fails_after_the_request_is_dead(store, kind, told):
    """Whether its work is half done is for a person to find out."""
    job = running(store)

    assert end(store, failed(job, kind=kind)) == Bury(DeathReason.CANCELLED)

    assert DeadLetter.objects.get().reason == DeathReason.CANCELLED
    assert told == [(str(job.id), TaskResultStatus.FAILED, ["web1:4"])]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(FailureKind.REJECTED, DeathReason.REJECTED), (FailureKind.UNDECODABLE, DeathReason.UNDECODABLE)],
)
def test_death_of_its_own_keeps_its_reason(store, kind, reason):
    """The request did not bring it about."""
    assert end(store, failed(running(store), kind=kind)) == Bury(reason)


@pytest.mark.parametrize("kind", [FailureKind.INTERRUPTED, FailureKind.UNKNOWN_TASK])
def test_job_that_was_only_put_off_is_cancelled(store, kind):
    """A worker that stops, or does not know the task: no failure of the job's own."""
    job = running(store)

    assert end(store, failed(job, kind=kind)) == Cancel()
    assert FinishedJob.objects.get().pk == job.id


def release(store, job):
    """Give it back unstarted."""
    assert settle.release(store, job.lease_id, [job.id], last=True) == {job.id}


def release_unknown(store, job):
    """Give it back as the worker that never heard of its claim."""
    assert settle.release_unknown(store, "worker-1", []) == {job.id}


def rescue_orphan(store, job):
    """Give it back after its lease was deleted by hand."""
    Lease.objects.all().delete()
    assert rescue(store) == {job.id}


def park(store, job):
    """Set it aside, as its task was paused meanwhile."""
    assert _without_paused(store, [job], {job.task}) == []


@pytest.mark.parametrize("give_back", [release, release_unknown, rescue_orphan, park])
def test_job_that_comes_back_cancelled_is_told_counted_and_frees_its_slot(store, told, caplog, give_back):
    """As one that was cancelled while it waited, and at once: nobody looks for its slot before the next sweep."""
    task = samples.add.using(concurrency_key="till")
    task.enqueue(1, 2)
    next_one = task.enqueue(3, 4)
    job = claim_one(store)
    operate.cancel([job.id])
    assert Job.objects.get(pk=next_one.id).state == JobState.BLOCKED

    with caplog.at_level(logging.INFO, "django_workqueue.cancel"):
        give_back(store, job)

    assert FinishedJob.objects.get().pk == job.id
    assert told == [(str(job.id), TaskResultStatus.FAILED, [])]
    assert Queue.objects.get(pk="default").cancelled == 1
    assert f"Job {job.id} of tests.samples.add was cancelled." in said(caplog)
    assert Job.objects.get(pk=next_one.id).state == JobState.READY


@pytest.mark.parametrize("max_attempts", [1, 5])
def test_job_of_a_lost_worker_is_cancelled(store, max_attempts, caplog):
    """Also in its last attempt: nobody waits for it. It is counted and logged as such, and nobody is woken for it."""
    samples.add.using(max_attempts=max_attempts).enqueue(1, 2)
    job = claim_one(store)
    operate.cancel([job.id])
    store.shift(31)

    [reclaimed] = reap(store)

    assert (reclaimed.cancelled, reclaimed.died) == (True, None)
    assert FinishedJob.objects.get().pk == job.id
    counts = Queue.objects.get(pk="default")
    assert (counts.cancelled, counts.reaped, counts.dead) == (1, 1, 0)
    assert "was cancelled with worker" in caplog.text


def test_timeout_is_retried_no_sooner_than_after_a_second(store):
    """A thread that did not hear of it is gone by then."""
    samples.add.enqueue(1, 2)
    settlement = failed(claim_one(store), kind=FailureKind.TIMEOUT, retry_after=timedelta())

    assert end(store, settlement).delay == timedelta(seconds=1)
    assert Job.objects.get().state == "scheduled"
