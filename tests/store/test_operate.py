"""What people do to rows, and the cleaning that keeps tables small."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import transaction

from django_workqueue.domain.states import JobState
from django_workqueue.exceptions import DuplicateJobError, JobNotFoundError
from django_workqueue.lifecycle.enqueue import MAX_ATTEMPTS
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Queue, QueueMinute, Worker
from django_workqueue.models.base import COPIED
from tests.claims import bury, claim_one
from tests.factories import (
    DeadLetterFactory,
    FailureFactory,
    FinishedJobFactory,
    JobFactory,
    QueueFactory,
    QueueMinuteFactory,
    WorkerFactory,
    ago,
)

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def prune(store, *, batch=1000, dead=None, statistics=DAY):
    """Clean once."""
    return store.prune(batch=batch, dead_retention=dead, statistics_retention=statistics)


# -- requeue -----------------------------------------------------------------------------------------------------------


def test_requeued_job_is_ready_with_further_attempts(store):
    """It does not die again at once: fresh tries, due now (garrytan/gbrain PR#2974)."""
    letter = DeadLetterFactory(attempts=3, max_attempts=3, died_at=ago(days=1), failures=3)

    store.requeue(letter.pk, attempts=2)

    job = Job.objects.get()
    assert (job.pk, job.state, job.attempts, job.max_attempts, job.lapses) == (letter.pk, JobState.READY, 3, 5, 0)
    assert abs(store.now() - job.ready_at) < timedelta(seconds=10)
    assert not DeadLetter.objects.exists()
    assert Failure.objects.filter(job_id=job.pk).count() == 3


def test_requeued_job_may_fail_as_often_as_it_was_granted(store):
    """Three more tries are three more tries."""
    letter = DeadLetterFactory(attempts=3, max_attempts=3)
    store.requeue(letter.pk, attempts=3)

    attempts = []
    for _ in range(3):
        job = claim_one(store)
        attempts.append((job.attempts, job.attempts >= job.max_attempts))
        store.release_unknown("worker-1", [])
        Job.objects.update(attempts=job.attempts)

    assert attempts == [(4, False), (5, False), (6, True)]


def test_requeue_keeps_the_job_as_it_was(store):
    """Id, key, arguments and metadata stay: a replay must be recognised as one."""
    letter = DeadLetterFactory(dedupe_key="k", tenant="acme", metadata='{"user":3}', priority=9, last_error="E: x")

    job = store.requeue(letter.pk, attempts=1)

    for name in ("pk", "dedupe_key", "tenant", "metadata", "priority", "last_error", "args", "kwargs", "enqueued_at"):
        assert getattr(job, name) == getattr(letter, name)


def test_every_column_survives_death_and_requeue(store):
    """Whatever a job carries: what is forgotten on the way is missed when it runs again."""
    columns = {
        "tenant": "acme",
        "priority": 9,
        "interruptions": 3,
        "dedupe_key": "k",
        "dedupe_until_start": True,
        "dedupe_expires_at": store.now() + timedelta(days=1),
        "concurrency_key": "printer",
        "concurrency_limit": 2,
        "workflow": uuid.uuid4(),
        "metadata": '{"user":3}',
    }
    job = JobFactory(**columns)
    carried = set(COPIED) - {"attempts", "max_attempts", "last_error"}
    bury(store, claim_one(store, "acme"))

    letter, requeued = DeadLetter.objects.get(), store.requeue(job.pk, attempts=1)

    stored = Job.objects.get()
    for name in carried:
        assert getattr(job, name) == getattr(letter, name) == getattr(requeued, name) == getattr(stored, name), name


def test_key_whose_time_is_over_hinders_no_requeue(store):
    """Neither the letter's own key, which comes back without it, nor that of the job which has it now."""
    over, later = store.now() - timedelta(seconds=1), store.now() + timedelta(days=1)
    former = DeadLetterFactory(dedupe_key="k", dedupe_expires_at=over)
    holder = JobFactory(dedupe_key="k", dedupe_expires_at=later)

    assert store.requeue(former.pk, attempts=1).dedupe_key is None

    Job.objects.filter(pk=holder.pk).update(dedupe_expires_at=over)
    letter = DeadLetterFactory(dedupe_key="k", dedupe_expires_at=later)
    assert store.requeue(letter.pk, attempts=1).dedupe_key == "k"
    assert Job.objects.get(pk=holder.pk).dedupe_key is None


def test_requeue_of_nothing_is_named(store):
    """A live job is no dead letter either."""
    live = JobFactory()

    for job_id in (uuid.uuid4(), live.pk):
        with pytest.raises(JobNotFoundError, match=str(job_id)):
            store.requeue(job_id, attempts=1)


def test_requeue_is_refused_while_the_key_is_live(store):
    """Never a second live job under one key; the transaction stays usable, and the letter stays."""
    letter, holder = DeadLetterFactory(dedupe_key="k"), JobFactory(dedupe_key="k")

    with transaction.atomic():
        with pytest.raises(DuplicateJobError) as caught:
            store.requeue(letter.pk, attempts=1)
        QueueFactory(name="after")

    assert (caught.value.job_id, caught.value.holder_id) == (letter.pk, holder.pk)
    assert DeadLetter.objects.filter(pk=letter.pk).exists()
    assert Queue.objects.filter(pk="after").exists()


@pytest.mark.parametrize("other", [{"tenant": "acme"}, {"queue": "mail"}])
def test_same_key_elsewhere_does_not_hinder_a_requeue(store, other):
    """Keys count within their queue and tenant."""
    letter = DeadLetterFactory(dedupe_key="k")
    JobFactory(dedupe_key="k", **other)

    assert store.requeue(letter.pk, attempts=1).pk == letter.pk


def test_requeue_may_grant_the_largest_number_of_attempts(store):
    """What the operator may ask for fits the column, also on top of what was used."""
    letter = DeadLetterFactory(attempts=5)

    store.requeue(letter.pk, attempts=MAX_ATTEMPTS)

    assert Job.objects.get().max_attempts == MAX_ATTEMPTS


# -- discard -----------------------------------------------------------------------------------------------------------


def test_discarded_letter_goes_with_its_failures(store):
    """Nothing else goes."""
    letter, other = DeadLetterFactory(failures=2), DeadLetterFactory(failures=1)

    store.discard(letter.pk)

    assert [row.pk for row in DeadLetter.objects.all()] == [other.pk]
    assert Failure.objects.count() == 1
    with pytest.raises(JobNotFoundError):
        store.discard(letter.pk)


# -- prune -------------------------------------------------------------------------------------------------------------


def test_finished_jobs_go_when_their_time_is_over(store):
    """With the failures that explain them."""
    over, kept = FinishedJobFactory(expires_at=ago(seconds=1)), FinishedJobFactory()
    FailureFactory(job_id=over.pk)
    FailureFactory(job_id=kept.pk)

    assert prune(store).finished == 1

    assert [row.pk for row in FinishedJob.objects.all()] == [kept.pk]
    assert [row.job_id for row in Failure.objects.all()] == [kept.pk]


def test_dead_letters_stay_for_ever_by_default(store):
    """Nothing leaves the dead letters by itself."""
    DeadLetterFactory(died_at=ago(days=5000))

    assert prune(store).dead == 0
    assert DeadLetter.objects.exists()


def test_dead_letters_go_after_a_retention_of_their_own(store):
    """Only where a project sets one."""
    DeadLetterFactory(died_at=ago(days=31), failures=2)
    kept = DeadLetterFactory(died_at=ago(days=29))

    assert prune(store, dead=timedelta(days=30)).dead == 1
    assert DeadLetter.objects.get().pk == kept.pk
    assert not Failure.objects.exists()


def test_history_of_a_job_that_lives_again_stays(store):
    """Its finished row of an earlier life goes, its failures belong to the live job too."""
    over = FinishedJobFactory(expires_at=ago(seconds=1))
    JobFactory(id=over.pk)
    FailureFactory(job_id=over.pk)

    prune(store)

    assert Failure.objects.filter(job_id=over.pk).exists()


def test_cleaning_is_done_in_batches(store):
    """No statement grows with the backlog of old rows (bensheldon/good_job#933)."""
    FinishedJobFactory.create_batch(5, expires_at=ago(seconds=1))

    assert [prune(store, batch=2).total for _ in range(4)] == [2, 2, 1, 0]


def test_silent_workers_and_old_minutes_go(store):
    """A worker row is removed a day after its last sign, rollups after their retention."""
    WorkerFactory(seen_at=ago(hours=25))
    alive = WorkerFactory(seen_at=ago(hours=23))
    QueueMinuteFactory(minute=ago(days=2))
    QueueMinuteFactory()

    pruned = prune(store)

    assert (pruned.workers, pruned.minutes, pruned.total) == (1, 1, 2)
    assert Worker.objects.get().pk == alive.pk
    assert QueueMinute.objects.count() == 1


def test_live_jobs_are_never_pruned(store):
    """However old."""
    JobFactory(ready_at=ago(days=5000), enqueued_at=ago(days=5000))
    JobFactory(leased=True)

    assert prune(store, dead=DAY).total == 0
    assert Job.objects.count() == 2


# -- shift -------------------------------------------------------------------------------------------------------------


def test_shift_ages_everything_alike(store):
    """Tests move the rows, as the database's clock cannot be moved."""
    due = JobFactory(scheduled=True)
    job = claim_one(store) if JobFactory(tenant="") else None
    bury(store, job)
    before = DeadLetter.objects.get().died_at

    store.shift(3600)

    assert Job.objects.get(pk=due.pk).ready_at == due.ready_at - timedelta(hours=1)
    assert DeadLetter.objects.get().died_at == before - timedelta(hours=1)
