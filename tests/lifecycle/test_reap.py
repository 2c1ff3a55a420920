"""Reap: what becomes of jobs whose workers never came back."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

import pytest

from django_workqueue.domain.outcomes import Bury, Retry
from django_workqueue.domain.states import DeathReason, FailureKind
from django_workqueue.domain.steps import idempotency_key
from django_workqueue.lifecycle.reap import adopt, judge, lanes_of, reap
from django_workqueue.models import DeadLetter, Failure, Job, Queue
from django_workqueue.signals import job_died
from django_workqueue.store.reap import Lapse
from tests import samples
from tests.claims import claim, claim_one

pytestmark = pytest.mark.django_db


def lapse(**changes) -> Lapse:
    """Return the first lapse of a job that has four attempts left."""
    values = {
        "job_id": uuid.UUID(int=1),
        "queue": "default",
        "attempts": 1,
        "max_attempts": 5,
        "lapses": 1,
        "shared": False,
        "kind": FailureKind.LAPSED,
    }
    return Lapse(**values | changes)


@pytest.fixture(autouse=True)
def _exact(settings):
    settings.WORKQUEUE = {"JITTER": 0}


# -- the judge ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lapses", "seconds"), [(1, 0), (2, 1), (3, 2), (4, 4)])
def test_first_lapse_is_prompt_and_the_next_ones_back_off(lapses, seconds):
    """A lost host is no fault of the job; a job that kills workers must not spin through the fleet."""
    assert judge(lapse(lapses=lapses)) == Retry(timedelta(seconds=seconds))


def test_lapse_alone_on_the_last_attempt_is_the_end():
    """Lost workers count (celery/celery#8610)."""
    assert judge(lapse(attempts=5)) == Bury(DeathReason.EXHAUSTED)


@pytest.mark.parametrize("attempts", [5, 6, 50])
def test_shared_lapse_buries_nobody(attempts):
    """Only one can be the culprit: they come back to be claimed alone."""
    assert isinstance(judge(lapse(attempts=attempts, shared=True)), Retry)


def test_adopted_jobs_wait_out_no_backoff():
    """Their worker restarted; however often."""
    assert judge(lapse(kind=FailureKind.ADOPTED, lapses=4)) == Retry(timedelta())
    assert judge(lapse(kind=FailureKind.ADOPTED, attempts=5)) == Bury(DeathReason.EXHAUSTED)


def test_queue_has_its_own_backoff(settings):
    """The lapsed job's queue decides."""
    settings.WORKQUEUE = {"JITTER": 0, "QUEUES": {"reports": {"BACKOFF": 60}}}

    assert judge(lapse(queue="reports", lapses=2)) == Retry(timedelta(seconds=60))


# -- the whole way -----------------------------------------------------------------------------------------------------


def test_job_that_kills_its_worker_each_time_dies_and_its_neighbours_do_not(store):
    """Three starts, then dead; the others of the batch live on (freelabz/secator PR#1199)."""
    for number in range(3):
        samples.add.using(max_attempts=3).enqueue(number, 0)
    killer = claim(store)[0].id
    for _ in range(12):
        store.shift(40)
        reap(store)
        store.promote()
        for job in claim(store, limit=1):
            if job.id != killer:
                store.complete(job.lease_id, [], worker="w", last=False)
                Job.objects.filter(pk=job.id).delete()

    [letter] = DeadLetter.objects.all()
    assert (letter.pk, letter.attempts, letter.reason) == (killer, 3, DeathReason.EXHAUSTED)
    assert [failure.kind for failure in letter.failures] == [FailureKind.LAPSED] * 3
    assert not Job.objects.exists()


def test_reaped_jobs_are_counted_and_told(store, caplog):
    """In the queue's counters and in the log, with the worker that was lost."""
    samples.add.enqueue(1, 2)
    job = claim_one(store, worker="web1:4")
    store.shift(31)

    with caplog.at_level(logging.WARNING, logger="django_workqueue"):
        [moved] = reap(store)

    assert moved.job_id == job.id
    row = Queue.objects.get(pk="default")
    assert (row.reaped, row.failed, row.dead) == (1, 1, 0)
    [record] = caplog.records
    assert (record.job_id, record.worker, record.kind, record.attempt) == (str(job.id), "web1:4", "lapsed", 1)
    assert record.idempotency_key == idempotency_key("", job.id)


def test_death_by_lapse_is_told_to_those_who_are_to_be_alerted(store, caplog):
    """With an error to read."""
    told = []

    def receiver(**facts):
        told.append(facts)

    job_died.connect(receiver)
    try:
        samples.add.using(max_attempts=1).enqueue(1, 2)
        claim_one(store)
        store.shift(31)
        reap(store)
    finally:
        job_died.disconnect(receiver)

    assert told[0]["reason"] == DeathReason.EXHAUSTED
    assert "Worker lost" in told[0]["last_error"]
    assert Queue.objects.get(pk="default").dead == 1
    assert caplog.records[-1].levelname == "ERROR"


def test_nothing_to_reap_writes_nothing(store):
    """Every worker asks every few seconds."""
    assert reap(store) == []
    assert not Queue.objects.exists()


def test_adoption_is_no_reaping(store):
    """The counter tells of lost workers only."""
    samples.add.enqueue(1, 2)
    claim_one(store)

    [moved] = adopt(store, ["worker-1"])

    assert moved.kind == FailureKind.ADOPTED
    assert not Queue.objects.filter(reaped__gt=0).exists()
    assert Failure.objects.get().kind == FailureKind.ADOPTED


def test_what_ends_by_an_adoption_is_counted(store):
    """A dead job and a cancelled one are over however their worker was lost."""
    samples.add.using(max_attempts=1).enqueue(1, 2)
    claim_one(store)
    samples.add.enqueue(1, 2)
    store.cancel(claim_one(store).id)

    adopt(store, ["worker-1"])

    queue = Queue.objects.get()
    assert (queue.failed, queue.dead, queue.cancelled, queue.reaped) == (2, 1, 1, 0)


def test_lanes_to_wake_are_those_to_which_jobs_came_back(store):
    """A dead job is nobody's work."""
    samples.add.using(max_attempts=1, tenant="dead").enqueue(1, 2)
    samples.add.using(tenant="alive").enqueue(1, 2)
    for tenant in ("dead", "alive"):
        claim_one(store, tenant)
    store.shift(31)

    assert lanes_of(reap(store)) == {("default", "alive")}
