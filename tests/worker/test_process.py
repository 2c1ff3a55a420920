"""One worker process from its first connection to its last, within this one."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created
from django.db.migrations.recorder import MigrationRecorder

from django_workqueue.domain.contract import task_finished, task_started
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Lease, Queue, QueueMinute, Worker
from django_workqueue.store import store_for
from django_workqueue.worker import process as module
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.process import EXIT_CLEAN, EXIT_CRASHED, EXIT_MIGRATIONS, EXIT_RECYCLE, WorkerProcess
from django_workqueue.worker.thread import Backoff
from tests import samples
from tests.factories import JobFactory, WorkerFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def said() -> list[str]:
    """Return what the worker says."""
    return []


def worker(said: list[str], **options) -> WorkerProcess:
    """Return a worker that ends when nothing is left."""
    given = {"burst": True, "concurrency": 2, "shutdown_timeout": timedelta(seconds=10)}
    return WorkerProcess(WorkerOptions(**given | options), say=said.append)


def test_worker_runs_all_jobs_once_and_without_a_word_of_warning(said, caplog):
    """Functions and coroutines, ours and Django's, batches and single ones (collectiveidea/delayed_job#1071)."""
    results = list(samples.add.enqueue_many([(number, 1) for number in range(150)]))
    results += [samples.add_async.enqueue(1, 2), samples.plain.enqueue(6, 7), samples.describe_ctx.enqueue("hello")]
    with caplog.at_level(logging.WARNING):
        assert worker(said).run() == EXIT_CLEAN

    for result in results:
        result.refresh()
    assert [result.return_value for result in results[:150]] == [number + 1 for number in range(150)]
    assert [result.return_value for result in results[150:]] == [3, 42, "hello 1"]
    assert {result.attempts for result in results} == {1}
    assert caplog.records == []
    assert not (Job.objects.exists() or Lease.objects.exists())  # noqa: PT018 - nothing is left


def test_one_broken_row_does_not_harm_the_others(said):
    """Nine succeed, one is dead with its payload and the reason (collectiveidea/delayed_job#512)."""
    results = samples.add.enqueue_many([(number, 1) for number in range(10)])
    Job.objects.filter(pk=results[4].id).update(args="{broken")

    assert worker(said).run() == EXIT_CLEAN

    assert FinishedJob.objects.count() == 9
    letter = DeadLetter.objects.get()
    assert (str(letter.pk), letter.args, letter.reason) == (results[4].id, "{broken", "undecodable")
    assert "cannot be decoded" in letter.last_error


def test_worker_says_what_it_serves_and_what_it_did(said):
    """One line at the start, one at the end."""
    samples.add.enqueue(1, 2)
    samples.fail.using(max_attempts=1).enqueue()
    worker(said, name="shop", queues=("default", "mail*"), exclude_queues=("mailing",)).run()

    assert "Worker shop:" in said[0]
    assert "serves queues default,mail*,!mailing with 2 slots" in said[0]
    assert "stopped: 1 jobs done, 1 attempts failed" in said[1]


def test_worker_leaves_its_counts_and_no_row(said):
    """What it did is written at the end; it is gone itself."""
    samples.add.enqueue(1, 2)
    worker(said).run()

    assert Queue.objects.get(pk="default").done == 1
    assert QueueMinute.objects.get().done == 1
    assert not Worker.objects.exists()


def test_each_start_has_an_identity_of_its_own(said):
    """Two containers may share host name and pid (postalserver/postal#3627)."""
    assert worker(said, name="same").id != worker(said, name="same").id
    assert len(worker(said, name="x" * 100).id) <= 200


def test_signals_tell_the_whole_life_of_a_job(said):
    """Started and finished, with the worker's id."""
    told = []

    def receiver(signal, task_result, **_facts):
        told.append((signal, str(task_result.status), task_result.worker_ids))

    for signal in (task_started, task_finished):
        signal.connect(receiver)
    try:
        samples.add.enqueue(1, 2)
        made = worker(said)
        made.run()
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(receiver)

    assert told == [(task_started, "RUNNING", [made.id]), (task_finished, "SUCCESSFUL", [made.id])]


def test_retries_and_deaths_take_their_way(said):
    """Rejected at once, failed until the attempts are used up."""
    samples.fail_by.enqueue("reject")
    samples.fail.using(max_attempts=1).enqueue("no paper")
    samples.fail_by.enqueue("retry_after")
    worker(said).run()

    assert set(DeadLetter.objects.values_list("reason", flat=True)) == {"rejected", "exhausted"}
    assert Job.objects.get().state == "scheduled"
    assert Failure.objects.count() == 3


def test_dead_leases_do_not_take_slots(said):
    """Free slots are a matter of the live process, not of rows (meeb/tubesync#252)."""
    for _ in range(4):
        JobFactory(lapsed=True, task="tests.samples.add", args="[1,2]", kwargs="{}")
    WorkerFactory(silent=True)
    result = samples.add.enqueue(1, 2)
    worker(said, concurrency=1).run()

    result.refresh()
    assert result.is_finished


def test_max_jobs_ends_the_worker(said):
    """With the rest untouched."""
    samples.add.enqueue_many([(number, 1) for number in range(5)])

    assert worker(said, burst=False, max_jobs=2).run() == EXIT_CLEAN
    assert (FinishedJob.objects.count(), Job.objects.ready().count()) == (2, 3)


def test_missing_migrations_are_named(said):
    """With the command, and another exit code than a crash (mojolicious/minion#20)."""
    recorded = MigrationRecorder.Migration.objects.filter(app="django_workqueue", name__startswith="0002")
    name = recorded.get().name
    recorded.delete()
    try:
        assert worker(said).run() == EXIT_MIGRATIONS
    finally:
        MigrationRecorder.Migration.objects.create(app="django_workqueue", name=name)

    assert said == [
        f"The database 'default' lacks migrations of django_workqueue ({name}). Run 'manage.py migrate' first."
    ]


def test_worker_waits_for_its_database(said, monkeypatch, caplog):
    """It may be started before the server (timgit/pg-boss#510)."""
    monkeypatch.setattr(Backoff, "failed", lambda self: 0.0)
    made = worker(said)
    real, calls = made._store.prepare, []

    def away():
        calls.append(1)
        if len(calls) < 3:
            raise OperationalError("connection refused")
        return real()

    monkeypatch.setattr(made._store, "prepare", away)
    with caplog.at_level(logging.WARNING):
        assert made.run() == EXIT_CLEAN

    assert caplog.text.count("cannot be reached") == 2


def test_worker_that_is_stopped_while_it_waits_leaves(said, monkeypatch):
    """In good order: it holds nothing."""
    made = worker(said)

    def away():
        made.stop.request()
        raise OperationalError("connection refused")

    monkeypatch.setattr(made._store, "prepare", away)

    assert made.run() == EXIT_CLEAN
    assert said == []


def test_thread_that_dies_ends_the_worker_with_another_code(said, monkeypatch, caplog):
    """A worker without a heartbeat is no worker (SweetProcess/django-pg-queue PR#16)."""
    monkeypatch.setattr(module.Heartbeat, "work", lambda self: 1 / 0)
    with caplog.at_level(logging.CRITICAL):
        assert worker(said, burst=False).run() == EXIT_CRASHED

    assert "heartbeat died" in caplog.text
    assert "after a crash" in said[-1]


@pytest.mark.parametrize(("listen", "words"), [(True, "listens and polls"), (False, "polls")])
def test_worker_says_whether_it_listens(said, listen, words):
    """Where the database can, and unless it may not."""
    made = worker(said, listen=listen)
    made.run()

    can = made._store.can_listen()
    assert f"; {words if can else 'polls'} every" in said[0]


def test_worker_that_is_to_start_over_says_so_and_why(said):
    """It stops in good order before."""

    def say(line):
        said.append(line)
        made.stop.recycle("a job cannot be ended.")

    made = WorkerProcess(WorkerOptions(), say=say)

    assert made.run() == EXIT_RECYCLE
    assert said[-1].endswith("starts over: a job cannot be ended.")
    assert not Worker.objects.exists()


@pytest.mark.parametrize(("processes", "warns"), [(None, False), (10_000, True)])
@pytest.mark.postgresql
def test_worker_warns_when_the_database_cannot_hold_its_connections(said, caplog, processes, warns):
    """At the start, not when the jobs fail for want of one (oban-bg/oban#364)."""
    with caplog.at_level(logging.WARNING):
        assert worker(said, processes=processes).run() == EXIT_CLEAN

    assert ("may need 60000 connections, and the database allows" in caplog.text) is warns


@pytest.mark.django_db
def test_only_a_server_has_a_limit_of_connections():
    """And a pooler has one of its own, which is not to be known."""
    limit = store_for().connection_limit()

    assert limit is None if connection.vendor == "sqlite" else limit > 0
    assert store_for(pooled=True).connection_limit() is None


def test_query_logs_do_not_grow_with_the_work(said, settings):
    """In no thread of the worker, its own ones included (django/django PR#2772)."""
    settings.DEBUG = True
    samples.ask_database.enqueue_many([()] * 300)
    logs = []

    def note(connection, **_facts):
        logs.append(connection.queries_log)

    connection_created.connect(note)
    try:
        assert worker(said).run() == EXIT_CLEAN
    finally:
        connection_created.disconnect(note)

    assert FinishedJob.objects.count() == 300
    assert logs
    assert max(map(len, logs)) < 100
