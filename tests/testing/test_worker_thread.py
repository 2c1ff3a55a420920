"""A whole worker in the test's process, for what only commits show."""

from __future__ import annotations

import threading

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from django_workqueue import task
from django_workqueue.models import FinishedJob, Worker
from django_workqueue.testing import ThreadedWorker
from django_workqueue.worker.process import WorkerProcess

from . import sample_tasks as tasks

committing = pytest.mark.django_db(transaction=True)
gate = threading.Event()


@task
def wait_at_the_gate():
    """Wait until the test opens the gate."""
    gate.wait(60)


@committing
def test_worker_runs_what_is_committed(workqueue_worker, done):
    """All by itself, in threads of its own."""
    results = [tasks.note.enqueue(value) for value in range(20)]

    workqueue_worker.settle()

    assert sorted(done) == list(range(20))
    assert {tasks.note.get_result(result.id).worker_ids[0] for result in results} == {workqueue_worker.id}


@committing
def test_worker_is_gone_at_the_end(done):
    """With its row and its connections: the database of the test can be flushed."""
    with ThreadedWorker() as worker:
        tasks.note.enqueue("it")
        worker.settle()
        assert Worker.objects.get().pk == worker.id

    assert not worker.is_alive()
    assert not Worker.objects.exists()
    assert done == ["it"]


@committing
def test_worker_takes_the_options_of_runworkers(done):
    """Which queues it serves, and how many jobs at a time."""
    tasks.note.enqueue("not mine")
    with ThreadedWorker(queues=("mail",), concurrency=1) as worker:
        tasks.note_in_mail.enqueue("mine")
        with pytest.raises(TimeoutError, match=r"not settled: tests\.testing\.sample_tasks\.note "):
            worker.settle(timeout=1)

    assert done == ["mine"]


@committing
def test_stop_waits_for_a_running_job():
    """A job that is under way ends as it would at a deploy."""
    gate.clear()
    with ThreadedWorker() as worker:
        wait_at_the_gate.enqueue()
        opener = threading.Timer(0.3, gate.set)
        opener.start()
        worker.settle()
    opener.join()

    assert FinishedJob.objects.count() == 1


@committing
def test_crash_of_the_worker_fails_the_test(monkeypatch, caplog):
    """A worker that died is no worker that had nothing to do."""

    def crash(self):
        raise RuntimeError("no more")

    monkeypatch.setattr(WorkerProcess, "run", crash)

    def use():
        with ThreadedWorker() as worker:
            tasks.note.enqueue(1)
            worker.settle()

    with pytest.raises(RuntimeError, match="ended with exit code None"):
        use()
    assert "died" in caplog.text


@pytest.mark.django_db
def test_worker_is_refused_inside_a_transaction():
    """It would wait for ever for jobs that are never committed."""
    with pytest.raises(RuntimeError, match="cannot see what this test has not committed"), ThreadedWorker():
        pass


@committing
def test_worker_is_refused_on_a_database_in_memory(monkeypatch):
    """Threads on one such database lock each other out at random; the message shows the setting."""
    monkeypatch.setattr(connection, "is_in_memory_db", lambda: True, raising=False)

    with pytest.raises(ImproperlyConfigured, match=r"DATABASES\['default'\]\['TEST'\] = \{'NAME':"), ThreadedWorker():
        pass
