"""Asking workers to be quiet, to work and to stop; forgetting those that are gone."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from django_workqueue.exceptions import InvalidJobError, WorkerNotFoundError, WorkerRequestError
from django_workqueue.lifecycle import operate
from django_workqueue.models import Job, Lease, Worker
from tests.factories import JobFactory, LeaseFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def test_request_is_written_down_with_who_and_when(store, caplog):
    """By name or by id; the worker finds it at its next beat."""
    named, other = WorkerFactory(name="web"), WorkerFactory()

    with caplog.at_level(logging.WARNING):
        operate.ask_worker("web", "quiet", by="olga")
        operate.ask_worker(other.pk, "stop", by="olga")

    assert dict(Worker.objects.values_list("pk", "request")) == {named.pk: "quiet", other.pk: "stop"}
    named.refresh_from_db()
    assert named.requested_by == "olga"
    assert abs(store.now() - named.requested_at) < timedelta(minutes=1)
    assert caplog.messages[0] == f"Worker {named.pk} was asked by olga to: quiet."


def test_quiet_can_be_taken_back_and_stop_cannot():
    """A worker that was asked to stop may have begun to."""
    worker = WorkerFactory()
    operate.ask_worker(worker.name, "quiet", by="olga")
    operate.ask_worker(worker.name, "work", by="olga")
    operate.ask_worker(worker.name, "stop", by="olga")

    with pytest.raises(WorkerRequestError, match="was asked to stop before"):
        operate.ask_worker(worker.name, "work", by="vera")

    assert Worker.objects.get().requested_by == "olga"


def test_silent_worker_is_asked_for_nothing():
    """It would not hear, and whoever asks should know."""
    worker = WorkerFactory(silent=True)

    with pytest.raises(WorkerRequestError, match="has gone silent"):
        operate.ask_worker(worker.name, "stop", by="olga")

    assert Worker.objects.get().request == "work"


def test_worker_that_is_not_there_is_named():
    """It may have stopped while its name was typed."""
    with pytest.raises(WorkerNotFoundError, match="There is no worker 'x'"):
        operate.ask_worker("x", "stop", by="olga")
    with pytest.raises(WorkerNotFoundError, match="There is no worker 'x'"):
        operate.forget_worker("x", by="olga")


def test_what_cannot_be_asked_is_refused():
    """Before anything is written."""
    worker = WorkerFactory()

    with pytest.raises(ValueError, match="'dance' is not a valid"):
        operate.ask_worker(worker.name, "dance", by="olga")
    with pytest.raises(InvalidJobError):
        operate.ask_worker(worker.name, "quiet", by="")

    assert Worker.objects.get().request == "work"


def test_forgotten_workers_jobs_come_back_with_their_attempts_counted():
    """At once, where its lease had hours to go."""
    worker = WorkerFactory(silent=True)
    lease = LeaseFactory(worker=worker.pk)
    job = JobFactory(leased=True, lease=lease, attempts=1)

    operate.forget_worker(worker.name, by="olga")
    [back] = operate.reap_once()

    assert (back.job_id, back.kind, back.attempts) == (job.pk, "lapsed", 1)
    assert Job.objects.get().state != "leased"
    assert not Worker.objects.exists()
    assert not Lease.objects.exists()


def test_living_worker_is_not_forgotten():
    """Its leases hold; whoever wants it gone asks it to stop."""
    worker = WorkerFactory()
    LeaseFactory(worker=worker.pk)

    with pytest.raises(WorkerRequestError, match="is alive"):
        operate.forget_worker(worker.name, by="olga")

    assert operate.reap_once() == []
    assert Worker.objects.exists()
