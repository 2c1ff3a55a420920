"""Cancel: against a claim or an ending at the same moment, and what only a hand in the tables brings about."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from django_workqueue.domain.outcomes import Retry
from django_workqueue.domain.states import Ending
from django_workqueue.lifecycle.reap import judge
from django_workqueue.models import DeadLetter, FinishedJob, Job, Lease
from tests.claims import bury, claim, claim_one, complete, fail
from tests.factories import JobFactory
from tests.racing import race

from .test_races import ROUNDS, places, prepared

pytestmark = pytest.mark.django_db(transaction=True)


def release(store, job):
    """Give a job back."""
    return store.release(job.lease_id, [job.id], last=True)


def reap(store, _job):
    """Take back whatever has lapsed."""
    return store.reap(judge)


def test_cancel_and_claim_never_both_win(store):
    """What a cancel found waiting never starts; what a claim took has been asked to end."""
    for _ in range(ROUNDS):
        job = JobFactory()

        claimed, cancelled = race(lambda: claim(prepared()), lambda pk=job.pk: prepared().cancel(pk))

        assert places(job.pk) == 1
        if claimed:
            assert isinstance(cancelled, Job)
            assert store.cancel_requests([claimed[0].lease_id]) == {(job.pk, claimed[0].lease_id, False)}
        else:
            assert isinstance(cancelled, FinishedJob)
        Job.objects.all().delete()


@pytest.mark.parametrize("end", [complete, fail, bury, release, reap])
def test_cancel_and_an_ending_never_both_win(store, end):
    """Whoever comes first: the job is in one place, and it does not wait there to start again."""
    for _ in range(ROUNDS):
        JobFactory()
        job = claim_one(store)
        if end is reap:
            store.shift(31)

        _, cancelled = race(
            lambda job=job: end(prepared(), job),
            lambda job=job: prepared().cancel(job.id),
        )

        assert places(job.id) == 1
        over = FinishedJob.objects.exists() or DeadLetter.objects.exists()
        assert over or cancelled is None
        assert claim(store) == []
        for model in (Job, Lease, FinishedJob, DeadLetter):
            model.objects.all().delete()


def test_two_cancels_end_a_job_once(store):
    """The second finds it gone."""
    job = JobFactory()

    answers = race(*[lambda: prepared().cancel(job.pk)] * 4)

    assert sum(isinstance(answer, FinishedJob) for answer in answers) == 1
    assert answers.count(None) == 3
    assert FinishedJob.objects.count() == 1


@pytest.mark.postgresql
def test_cancel_that_is_not_committed_holds_up_nobody(store):
    """Neither claims of other jobs nor those of its own, which pass over it."""
    held, free = JobFactory(), JobFactory()
    with transaction.atomic():
        store.cancel(held.pk)

        [claimed] = race(lambda: claim(prepared()))

        assert [job.id for job in claimed] == [free.pk]


def test_cancel_that_is_rolled_back_never_was(store):
    """The job waits as before."""
    job = JobFactory()
    with transaction.atomic():
        store.cancel(job.pk)
        transaction.set_rollback(True)

    assert places(job.pk) == 1
    assert claim_one(store).id == job.pk


def test_orphan_that_was_to_be_cancelled_is_not_rescued(store):
    """Somebody deleted its lease by hand; nobody wants it any more."""
    JobFactory()
    job = claim_one(store)
    store.cancel(job.id)
    Lease.objects.all().delete()

    assert len(store.rescue_orphans().cancelled) == 1

    assert FinishedJob.objects.get().outcome == Ending.CANCELLED
    assert not Job.objects.exists()


def test_job_that_was_to_be_cancelled_alone_does_not_come_back(store):
    """Its neighbours under the lease do."""
    JobFactory.create_batch(3)
    first, *others = claim(store)
    store.cancel(first.id)

    store.release(first.lease_id, [job.id for job in (first, *others)], last=True)

    assert set(Job.objects.values_list("pk", "state")) == {(job.id, "ready") for job in others}


@pytest.mark.postgresql
def test_cancel_call_is_heard(store):
    """By whoever listens, beside the lanes with new work."""
    with store.listening() as ear:
        store.call_to_cancel([7, 5])
        store.notify({("mail", "acme")})
        heard = [message for _ in range(2) for message in ear.hear(20)]

    assert heard == [(frozenset({5, 7}),), {("mail", "acme")}]


def test_delay_of_a_retry_does_not_keep_a_request_waiting(store):
    """A job that is to be cancelled is not put off until its backoff is over."""
    JobFactory()
    job = claim_one(store)
    store.cancel(job.id)
    fail(store, job, Retry(timedelta(hours=1)))

    assert FinishedJob.objects.get().pk == job.id
    assert store.next_due() is None
