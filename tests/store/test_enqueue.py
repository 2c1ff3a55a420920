"""Storing jobs: clashes of ids and keys answer with the job that was there, and break nothing."""

from __future__ import annotations

import json
import sqlite3
import uuid
from datetime import timedelta

import pytest
from django.db import connection, transaction

from django_workqueue.domain.ids import new_id
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Queue
from tests import samples
from tests.claims import bury, claim_one, complete, fail
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory

pytestmark = pytest.mark.django_db


def unsaved(**columns) -> Job:
    """Return a job that is not stored."""
    return Job(**{"id": new_id(), "queue": "default", "task": "tests.samples.add"} | columns)


def keyed(key: str | None = "k", **columns) -> Job:
    """Return a job with a dedupe key that is not stored."""
    return unsaved(dedupe_key=key, **columns)


# -- keys -------------------------------------------------------------------------------------------------------------


def test_second_job_under_a_live_key_answers_the_first(store):
    """The stored job comes back whole, marked as a duplicate."""
    [(first, _)] = store.insert([keyed(args="[1]", priority=3)])

    [(job, duplicate)] = store.insert([keyed(args="[2]", priority=9)])

    assert duplicate
    assert (job.pk, job.args, job.priority) == (first.pk, "[1]", 3)
    assert Job.objects.count() == 1


@pytest.mark.parametrize("other", [{"tenant": "acme"}, {"queue": "mail"}, {"dedupe_key": "K"}])
def test_key_counts_within_its_queue_and_tenant(store, other):
    """One tenant's key never suppresses another's job (timgit/pg-boss#367)."""
    store.insert([keyed()])

    assert not store.insert([keyed(**{"key": other.pop("dedupe_key", "k")} | other)])[0].duplicate


def test_jobs_without_a_key_never_collapse(store):
    """No key is no claim to be the only one."""
    assert [duplicate for _, duplicate in store.insert([keyed(None), keyed(None), keyed("k")])] == [False] * 3


def test_key_is_taken_while_its_job_runs(store):
    """Under ``finish``, the default, a key covers waiting and running jobs (procrastinate-org/procrastinate#1050)."""
    samples.bill.enqueue(7)
    claim_one(store)

    result = samples.bill.enqueue(7)

    assert result.duplicate
    assert result.status == "RUNNING"


def test_key_is_taken_while_its_job_waits_for_a_retry(store):
    """A failed attempt is not the end of the job."""
    samples.bill.enqueue(7)
    fail(store, claim_one(store))

    assert samples.bill.enqueue(7).duplicate


@pytest.mark.parametrize("end", [complete, bury])
def test_key_is_free_once_its_job_is_over(store, end):
    """Done or dead, the next job may have it."""
    first = samples.bill.enqueue(7)
    end(store, claim_one(store))

    second = samples.bill.enqueue(7)

    assert not second.duplicate
    assert second.id != first.id


def test_key_until_start_covers_waiting_jobs_only(store):
    """An event that comes during the run makes another job, and a third one none (timgit/pg-boss#367)."""
    first = samples.rebuild_index.enqueue()
    assert samples.rebuild_index.enqueue().id == first.id
    claim_one(store)

    second = samples.rebuild_index.enqueue()

    assert not second.duplicate
    assert samples.rebuild_index.enqueue().id == second.id


def test_key_is_free_after_a_rollback_to_a_savepoint(store):
    """The look-up sees what the caller's transaction sees, no more."""
    with transaction.atomic():
        samples.bill.enqueue(7)
        transaction.set_rollback(True)

    assert not samples.bill.enqueue(7).duplicate


def test_suppressed_jobs_are_counted_after_the_commit(store, django_capture_on_commit_callbacks):
    """The counter's row is not locked while the caller's transaction runs."""
    samples.bill.enqueue(7)

    with django_capture_on_commit_callbacks() as callbacks:
        samples.bill.enqueue_many([(7,), (7,), (8,)])
        assert not Queue.objects.filter(duplicates__gt=0).exists()
    for callback in callbacks:
        callback()

    assert Queue.objects.get(pk="default").duplicates == 2


def test_many_clashes_do_not_exceed_the_databases_parameters(store):
    """A batch that was stored before is answered whole, however many parameters a statement may have."""
    if connection.vendor == "sqlite":
        connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 1100)
    calls = [(number,) for number in range(1200)]
    first = samples.bill.enqueue_many(calls)

    again = samples.bill.enqueue_many(calls)

    assert all(result.duplicate for result in again)
    assert [result.id for result in again] == [result.id for result in first]


# -- ids --------------------------------------------------------------------------------------------------------------


def test_live_id_answers_the_stored_job_unchanged(store):
    """Enqueueing again neither resets attempts nor changes the job."""
    task = samples.add.using(job_id=uuid.uuid4())
    task.enqueue(1, 2)
    claim_one(store)

    result = task.using(queue_name="mail").enqueue(3, 4)

    assert (result.duplicate, result.args) == (True, [1, 2])
    job = Job.objects.get()
    assert (job.attempts, job.queue, job.decoded_args) == (1, "default", [1, 2])


def test_id_twice_in_one_batch_is_one_job(store):
    """The second of them is the duplicate."""
    job_id = uuid.uuid4()

    stored = store.insert([unsaved(id=job_id), unsaved(id=job_id, args="[2]")], given_ids=frozenset([job_id]))

    assert [(job.pk, duplicate) for job, duplicate in stored] == [(job_id, False), (job_id, True)]
    assert Job.objects.get().args == "[]"


@pytest.mark.parametrize("factory", [FinishedJobFactory, DeadLetterFactory])
def test_finished_or_dead_id_may_be_enqueued_anew(store, factory):
    """It is a new life of the job, from its first attempt, and the job is in one place only."""
    job_id = factory().pk

    result = samples.add.using(job_id=job_id).enqueue(1, 2)

    assert not result.duplicate
    assert Job.objects.get(pk=job_id).attempts == 0
    assert (FinishedJob.objects.count(), DeadLetter.objects.count()) == (0, 0)


def test_failures_of_an_earlier_life_stay(store):
    """History is appended to and never taken away by an enqueue."""
    job_id = DeadLetterFactory(failures=3).pk

    samples.add.using(job_id=job_id).enqueue(1, 2)

    assert Failure.objects.filter(job_id=job_id).count() == 3


def test_dead_letter_stays_when_its_id_is_refused_for_its_key(store):
    """A clash of the key stores nothing, so nothing may be cleared away for it."""
    samples.bill.enqueue(7)
    dead = DeadLetterFactory(failures=1)

    result = samples.bill.using(job_id=dead.pk).enqueue(7)

    assert result.duplicate
    assert DeadLetter.objects.filter(pk=dead.pk).exists()


# -- statements -------------------------------------------------------------------------------------------------------


def test_lone_job_is_one_statement(store, django_assert_num_queries):
    """Nothing is looked up where nothing can clash."""
    with django_assert_num_queries(1):
        store.insert([unsaved()])


def test_stamps_are_the_databases_own(store):
    """Due times are compared with the clock that made the stamp; a host's may be minutes off."""
    [(job, _)] = store.insert([unsaved()])
    job.refresh_from_db()

    assert abs(store.now() - job.enqueued_at) < timedelta(seconds=10)
    assert job.ready_at == job.enqueued_at


def test_fresh_job_can_be_claimed_within_the_same_transaction(store):
    """A stamp finer than the clock that judges it would leave new jobs unready for a moment."""
    for _ in range(20):
        [(job, _)] = store.insert([unsaved()])
        assert claim_one(store).id == job.pk


def test_large_batch_stores_the_same_columns_as_a_small_one(store):
    """Whatever way a database has for many rows, each is the row that was asked for."""
    texts = ["tab\there", "line\nbreak", "back\\slash", "\\N", "100%", "ü🎉", '"', ",", "{}", "null", ""]
    columns = {"priority": -7, "max_attempts": 3, "metadata": '{"a":"\\n"}', "queue": "mail"}
    due = store.now() + timedelta(hours=1)
    asked = [
        [unsaved(args=json.dumps([text]), tenant=text.strip(), **columns) for text in texts * times] for times in (1, 9)
    ]
    for jobs in asked:
        jobs.append(unsaved(state="scheduled", ready_at=due, **columns))
        stored = store.insert(jobs)
        assert [job.pk for job, _ in stored] == [job.pk for job in jobs]

    for jobs in asked:
        for job in jobs:
            row = Job.objects.get(pk=job.pk)
            for name in ("args", "tenant", "state", "dedupe_key", "lease_id", "attempts", *columns):
                assert getattr(row, name) == getattr(job, name)
            assert row.rank == 7
            assert abs(store.now() - row.enqueued_at) < timedelta(minutes=1)
    assert Job.objects.filter(ready_at=due).count() == 2


def test_due_time_that_the_caller_set_is_kept(store):
    """The database's default fills in only what nobody set."""
    due = store.now() - timedelta(days=3)

    [(job, _)] = store.insert([unsaved(ready_at=due, enqueued_at=due)])

    assert Job.objects.get(pk=job.pk).ready_at == due


def test_key_that_keeps_changing_hands_is_no_endless_loop(store, monkeypatch):
    """The holder may end between insert and look-up; after some rounds the caller is told."""
    JobFactory(dedupe_key="k")
    monkeypatch.setattr(store, "_holders", lambda jobs: {})

    with pytest.raises(Exception, match="kept changing hands"):
        store.insert([keyed()])
