"""The connection breaks after a commit and before its answer: nothing is lost, and nothing is recorded twice."""

from __future__ import annotations

import logging
import sqlite3
from unittest.mock import Mock

import psycopg
import pytest
from django.db import DataError, OperationalError, connection, connections

from django_workqueue.domain.states import FailureKind, JobState
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Lease
from django_workqueue.worker import dispatcher as module
from django_workqueue.worker.thread import Backoff
from tests.claims import claim_one, put_back
from tests.factories import JobFactory

from .bench import WORKER, Bench

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(Backoff, "failed", lambda self: 0.0)


def answer_lost(monkeypatch, bench: Bench, verb: str, times: int = 1) -> list[int]:
    """Let ``verb`` of the store do its work and then fail as a broken connection does, so many times."""
    real, calls = getattr(bench.store, verb), []

    def lost(*args, **options):
        answer = real(*args, **options)
        calls.append(1)
        if len(calls) <= times:
            raise OperationalError("server closed the connection unexpectedly")
        return answer

    monkeypatch.setattr(bench.store, verb, lost)
    return calls


def bad_value() -> DataError:
    """Return the error of a database that will not store a value, however often it is asked."""
    error = DataError("value too long: [1,2]")
    error.__cause__ = sqlite3.DataError() if connection.vendor == "sqlite" else psycopg.errors.lookup("22001")()
    if connection.vendor == "sqlite":
        error.__cause__.sqlite_errorname = "SQLITE_TOOBIG"
    return error


def test_claim_whose_answer_was_lost_is_given_back_uncounted(monkeypatch, caplog):
    """The worker holds jobs that it does not know of."""
    JobFactory.create_batch(2)
    bench = Bench(concurrency=1)
    answer_lost(monkeypatch, bench, "claim")
    with caplog.at_level(logging.WARNING, logger="django_workqueue"):
        assert not bench.round()
        assert Job.objects.leased().count() == 1
        assert bench.round()

    assert "Gave back 1 jobs of claims whose answer was lost" in caplog.text
    bench.work()
    assert FinishedJob.objects.count() == 2
    assert set(FinishedJob.objects.values_list("attempts", flat=True)) == {1}


def test_claims_that_are_known_or_others_stay_in_the_search(monkeypatch, store):
    """Only what nobody remembers is given back."""
    JobFactory.create_batch(3)
    elsewhere = claim_one(store, worker="worker-2")
    bench = Bench(concurrency=2)
    bench.round()
    bench.start()
    bench.dispatcher._after_error()
    bench.round()

    assert Job.objects.leased().count() == 3
    assert Job.objects.get(pk=elsewhere.id).state == JobState.LEASED


def test_lost_lease_is_left_to_the_reaper_by_the_search():
    """Its jobs were started, so their attempt counts."""
    JobFactory()
    bench = Bench(concurrency=1)
    bench.round()
    [job] = bench.start()
    bench.held.lost([job.lease_id])
    bench.dispatcher._after_error()
    bench.round()

    assert Job.objects.get().attempts == 1


def test_completion_whose_answer_was_lost_is_not_repeated(monkeypatch, caplog):
    """It is looked up: done is done, and no lease is called lost."""
    JobFactory()
    bench = Bench(concurrency=1)
    bench.round()
    bench.finish(*bench.start())
    calls = answer_lost(monkeypatch, bench, "complete")
    with caplog.at_level(logging.WARNING, logger="django_workqueue"):
        assert not bench.round()
        assert bench.round()

    assert len(calls) == 1
    assert (bench.tally.done, FinishedJob.objects.count(), len(bench.held)) == (1, 1, 0)
    assert "is lost" not in caplog.text


def test_job_that_was_left_to_its_lease_is_not_given_back_after_a_reconnect(monkeypatch):
    """No database would record it: it comes back by the reaper, its attempt counted, and not for nothing for ever."""
    JobFactory()
    bench = Bench(concurrency=1)
    bench.round()
    bench.finish(*bench.start())
    for verb in ("complete", "fail"):
        monkeypatch.setattr(bench.store, verb, Mock(side_effect=bad_value()))
    bench.round()
    assert len(bench.held) == 0

    bench.dispatcher._after_error()
    bench.dispatcher._connect()

    row = Job.objects.get()
    assert (row.state, row.attempts) == (JobState.LEASED, 1)


def test_completion_that_never_reached_the_server_is_repeated(monkeypatch):
    """As long as the lease lives, it can be recorded (celery/django-celery#363)."""
    JobFactory()
    bench = Bench(concurrency=1)
    bench.round()
    bench.finish(*bench.start())
    real, calls = bench.store.complete, []

    def refused(*args, **options):
        calls.append(1)
        if len(calls) < 4:
            raise OperationalError("connection refused")
        return real(*args, **options)

    monkeypatch.setattr(bench.store, "complete", refused)
    rounds = [bench.round() for _ in range(4)]

    assert rounds == [False, False, False, True]
    assert (bench.tally.done, FinishedJob.objects.count()) == (1, 1)


def test_failure_whose_answer_was_lost_is_recorded_once(monkeypatch):
    """One row for one attempt."""
    JobFactory(task="tests.samples.add")
    bench = Bench(concurrency=1)
    bench.round()
    bench.finish(*bench.start(), fail=True)
    answer_lost(monkeypatch, bench, "fail")
    bench.round()
    bench.round()

    assert Failure.objects.count() == 1
    assert len(bench.held) == 0


def test_release_whose_answer_was_lost_is_done_once(monkeypatch):
    """The attempt is given back once."""
    JobFactory(attempts=1)
    bench = Bench(concurrency=1)
    bench.round()
    monkeypatch.setattr(module, "STALE_SECONDS", 0.0)
    answer_lost(monkeypatch, bench, "release")
    monkeypatch.setattr(bench.dispatcher, "_claim", lambda: None)
    bench.round()
    bench.round()

    row = Job.objects.get()
    assert (row.state, row.attempts, row.lease_id) == (JobState.READY, 1, None)
    assert len(bench.held) == 0


def test_jobs_that_could_not_be_given_back_are_given_back_later(monkeypatch):
    """They are off the board, and nobody else knows of them."""
    JobFactory()
    bench = Bench(concurrency=1)
    bench.round()
    monkeypatch.setattr(module, "STALE_SECONDS", 0.0)
    monkeypatch.setattr(bench.dispatcher, "_claim", lambda: None)
    real, calls = bench.store.release, []

    def refused(*args, **options):
        calls.append(1)
        if len(calls) == 1:
            raise OperationalError("connection refused")
        return real(*args, **options)

    monkeypatch.setattr(bench.store, "release", refused)
    assert [bench.round(), bench.round()] == [False, True]

    assert Job.objects.get().state == JobState.READY


@pytest.mark.postgresql
def test_outcome_whose_row_somebody_holds_waits_without_holding_up_the_others(caplog):
    """A person looks at a job in a transaction; the worker goes on with the rest."""
    held, other = JobFactory(), JobFactory()
    bench = Bench(concurrency=2)
    bench.round()
    bench.finish(*bench.start())
    looking = connections.create_connection("default")
    try:
        with caplog.at_level(logging.WARNING, logger="django_workqueue"):
            looking.set_autocommit(False)
            with looking.cursor() as cursor:
                cursor.execute(f"SELECT 1 FROM {Job._meta.db_table} WHERE id = %s FOR UPDATE", [held.pk])
            assert bench.round()
        assert [row.pk for row in FinishedJob.objects.all()] == [other.pk]
        assert len(bench.held) == 1
        looking.rollback()
    finally:
        looking.close()
    assert bench.round()

    assert FinishedJob.objects.count() == 2
    assert "another session holds" in caplog.text


def test_outcome_that_no_database_stores_does_not_hold_up_the_others(monkeypatch, caplog):
    """It becomes a failure that can be stored; the batch is written without it."""
    JobFactory.create_batch(3, task="tests.samples.add")
    bench = Bench(concurrency=3)
    bench.dispatcher._pace.ran(0.0001)
    bench.round()
    jobs = bench.start()
    bench.finish(*jobs)
    real = bench.store.complete

    def picky(lease_id, done, **options):
        if any(each.job.id == jobs[1].id for each in done):
            raise bad_value()
        return real(lease_id, done, **options)

    monkeypatch.setattr(bench.store, "complete", picky)
    with caplog.at_level(logging.INFO, logger="django_workqueue"):
        assert bench.round()

    assert {row.pk for row in FinishedJob.objects.all()} == {jobs[0].id, jobs[2].id}
    assert "could not be stored" in Failure.objects.get(job_id=jobs[1].id).message
    assert "value too long" not in caplog.text


def test_outcome_that_cannot_be_written_at_all_is_left_to_the_reaper(monkeypatch, store):
    """The worker goes on; the lease lapses, and the job comes back with its attempt counted."""
    JobFactory(task="tests.samples.add")
    bench = Bench(concurrency=1)
    bench.round()
    bench.finish(*bench.start())

    def never(*_args, **_options):
        raise bad_value()

    monkeypatch.setattr(bench.store, "complete", never)
    monkeypatch.setattr(bench.store, "fail", never)
    assert bench.round()

    assert len(bench.held) == 0
    assert Lease.objects.exists()
    store.shift(31)
    [moved] = store.reap(put_back)
    assert (moved.attempts, moved.kind) == (1, FailureKind.LAPSED)


def test_claim_that_fails_does_not_look_like_an_idle_queue(monkeypatch, caplog):
    """It is logged, and tried again."""
    JobFactory()
    bench = Bench(concurrency=1)
    real, calls = bench.store.claim, []

    def refused(*args, **options):
        calls.append(1)
        if len(calls) == 1:
            raise OperationalError("password authentication failed")
        return real(*args, **options)

    monkeypatch.setattr(bench.store, "claim", refused)
    with caplog.at_level(logging.WARNING, logger="django_workqueue"):
        assert not bench.round()

    assert "password authentication failed" in caplog.text
    assert bench.work() == 1


def test_error_of_ours_is_logged_as_an_error_and_survived(monkeypatch, caplog):
    """Anything raised in the loop is logged, backed off and retried (RealOrangeOne/django-tasks#190)."""
    JobFactory()
    bench = Bench(concurrency=1)
    monkeypatch.setattr(bench.dispatcher.lanes, "read_news", lambda: 1 / 0)
    with caplog.at_level(logging.WARNING, logger="django_workqueue"):
        assert not bench.round()
    monkeypatch.undo()

    assert caplog.records[-1].levelname == "ERROR"
    assert bench.work() == 1


def test_worker_that_leaves_while_the_database_is_away_gives_up_in_time(monkeypatch):
    """Its leases lapse then."""
    JobFactory()
    bench = Bench(concurrency=1)
    bench.round()
    bench.start()
    monkeypatch.setattr(module, "GIVE_BACK_SECONDS", 0.05)

    def away():
        raise OperationalError("connection refused")

    monkeypatch.setattr(bench.store, "prepare", away)
    bench.dispatcher._drain()
    monkeypatch.undo()

    assert Job.objects.get().state == JobState.LEASED
    assert Lease.objects.get().worker == WORKER
    assert not DeadLetter.objects.exists()
    assert connection.is_usable()
