"""How a running job and its worker reach each other: renewals on request, progress, and word of a cancel."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connections, transaction

from django_workqueue.exceptions import LeaseLostError, QueueUnavailableError
from django_workqueue.models import Job, Lease
from django_workqueue.store import store_for
from django_workqueue.store.base import CancelCall
from django_workqueue.worker import heartbeat, job_link
from django_workqueue.worker.board import Board
from django_workqueue.worker.job_link import WorkerLink
from tests.claims import put_back
from tests.factories import JobFactory

from .jobs import running, wait_until
from .test_heartbeat import Patient
from .test_listener import FakeEar, FakeStore, Listening

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


@pytest.fixture
def patient() -> Patient:
    """Return a heart that does not beat yet."""
    return Patient()


@pytest.fixture
def job(patient):
    """Return a job that the worker holds."""
    JobFactory()
    return patient.hold()


@pytest.fixture
def link(patient, job) -> WorkerLink:
    """Return what it reaches its worker by."""
    return WorkerLink(job, store_for(), patient.errands, patient.cancels)


def elsewhere(call, *args):
    """Call in a thread of its own, as a job is, and return the answer."""

    def work():
        try:
            return call(*args)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(60)


# -- renewals ----------------------------------------------------------------------------------------------------------


def test_heartbeat_renews_the_lease_now(patient, job, link, store):
    """And says that the job is wanted."""
    store.shift(20)
    expiry = Lease.objects.get().expires_at
    with running(patient.heart, patient.ended.request):
        assert not elsewhere(link.heartbeat)

    assert Lease.objects.get().expires_at > expiry


def test_heartbeat_says_that_the_job_is_to_be_cancelled(patient, job, link, store):
    """At once, though the worker has not heard of it yet."""
    store.cancel(job.id)
    with running(patient.heart, patient.ended.request):
        assert not link.cancelled
        assert elsewhere(link.heartbeat)
        assert asyncio.run(link.aheartbeat())


@pytest.mark.parametrize(("seconds", "reason"), [(31, "expired"), (31, "taken"), (4000, "capped")])
def test_heartbeat_on_a_lost_lease_says_why(patient, job, link, seconds, reason):
    """Lapsed, in another hand, or at its cap."""
    store = store_for()
    if reason == "capped":
        Lease.objects.update(expires_at=Lease.objects.get().deadline_at)
    store.shift(seconds)
    if reason == "taken":
        store.reap(put_back)
        other = patient.hold(worker="other")
        patient.held.settled(other.lease_id, [other.id])
    with running(patient.heart, patient.ended.request), pytest.raises(LeaseLostError) as caught:
        elsewhere(link.heartbeat)

    assert (caught.value.reason, caught.value.job_id, caught.value.retryable) == (reason, job.id, False)
    assert caught.value.holder == ("other" if reason == "taken" else "")


def test_heartbeat_passes_an_open_transaction(patient, job, link, store):
    """The renewal is seen by others although the job has not committed; on SQLite it is when it has."""
    store.shift(20)
    expiry = Lease.objects.get().expires_at

    def body():
        with transaction.atomic():
            Job.objects.filter(pk=job.id).update(lapses=7)
            link.heartbeat()
            transaction.set_rollback(not store.has_one_writer)

    with running(patient.heart, patient.ended.request):
        elsewhere(body)

    assert Lease.objects.get().expires_at > expiry


@pytest.mark.postgresql
def test_heartbeat_without_a_database_says_so(patient, job, link, monkeypatch):
    """The job may try again; the heart goes on."""

    def break_off(*_args):
        raise OperationalError("gone")

    monkeypatch.setattr(heartbeat, "keep", break_off)
    with running(patient.heart, patient.ended.request):
        for _ in range(2):
            with pytest.raises(QueueUnavailableError):
                elsewhere(link.heartbeat)
    assert patient.crashes == []


@pytest.mark.postgresql
def test_heartbeat_does_not_wait_for_ever(job, link, monkeypatch):
    """A heart that hangs in the database must not keep the job."""
    monkeypatch.setattr(job_link, "ANSWER_SECONDS", 0.05)

    with pytest.raises(QueueUnavailableError):
        link.heartbeat()
    with pytest.raises(QueueUnavailableError):
        asyncio.run(link.aheartbeat())


# -- progress ----------------------------------------------------------------------------------------------------------


def test_progress_is_stored_while_the_job_goes_on(patient, job, link):
    """By the heart, woken at once."""
    with running(patient.heart, patient.ended.request):
        link.report('{"done":1}')
        wait_until(lambda: Job.objects.get().progress == '{"done":1}', "the progress")
        link.report('{"done":2}')
        wait_until(lambda: Job.objects.get().progress == '{"done":2}', "the next one")


# -- cancels -----------------------------------------------------------------------------------------------------------


def test_worker_looks_for_requests_when_it_is_told(patient, job, link, store):
    """At once, however short its jobs have run."""
    store.cancel(job.id)
    with running(patient.heart, patient.ended.request):
        patient.heart.hear_cancel_call([job.lease_id])
        wait_until(lambda: link.cancelled, "the worker to hear")


def test_worker_looks_by_itself_only_while_a_job_runs_for_long(patient, job, link, store, monkeypatch):
    """Free while jobs are short; the safe way where nobody can be told."""
    asked = []
    real = patient.store.cancel_requests
    monkeypatch.setattr(patient.store, "cancel_requests", lambda leases: asked.append(1) or real(leases))
    store.cancel(job.id)
    for _ in range(3):
        patient.heart._round()
    assert asked == []

    patient.longest_run = 1.5
    patient.heart._round()

    assert (asked, link.cancelled) == ([1], True)
    patient.heart._round()
    assert asked == [1]


def test_call_for_others_is_not_ours(patient, job):
    """Every worker hears every call."""
    patient.heart.hear_cancel_call([job.lease_id + 1])
    assert not patient.cancels.was_called()
    patient.heart.hear_cancel_call([job.lease_id + 1, job.lease_id])
    assert patient.cancels.was_called()
    assert not patient.cancels.was_called()


def test_listener_passes_calls_to_cancel_on():
    """Beside the lanes, which they are not."""
    ear = FakeEar()
    with Listening(FakeStore(ear)) as listening:
        ear.messages.append(CancelCall(frozenset({7})))
        wait_until(lambda: listening.calls, "the call")
        assert not listening.news.lanes

    assert listening.calls == [7]


def test_job_that_runs_longest_is_known(job):
    """So that a worker with short jobs alone need not look."""
    board = Board(1, may_start=lambda _one: True, wake=lambda: None)
    assert board.longest_run() == board.run_seconds(job) == 0
    board.start(job)
    wait_until(lambda: board.run_seconds(job) > 0, "the clock to move on")

    assert board.longest_run() > 0
