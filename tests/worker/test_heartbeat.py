"""The heartbeat: leases with work in hand are renewed, and the worker's row says that it lives."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

import pytest
from django.db import OperationalError

from django_workqueue.models import Lease, Worker
from django_workqueue.models.worker import WorkerState
from django_workqueue.store import store_for
from django_workqueue.store.watch import Beat
from django_workqueue.worker.cancels import Cancels
from django_workqueue.worker.errands import Errands
from django_workqueue.worker.heartbeat import Heartbeat
from django_workqueue.worker.held import HeldLeases
from django_workqueue.worker.shutdown import StopRequest
from tests.claims import claim_one, put_back
from tests.factories import JobFactory, WorkerFactory

from .jobs import running, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Patient:
    """A heart with its leases."""

    def __init__(self) -> None:
        self.held, self.ended, self.crashes = HeldLeases(), StopRequest(), []
        self.store, self.longest_run = store_for(), 0.0
        self.state, self.heeded = WorkerState.RUNNING, []
        self.errands, self.cancels = Errands(), Cancels([])
        self.heart = Heartbeat(
            store=self.store,
            row=lambda: WorkerFactory.build(id="w"),
            held=self.held,
            report=lambda: Beat(self.state, memory_bytes=7, running=1, done=2, failed=3),
            errands=self.errands,
            cancels=self.cancels,
            heed=self.heed,
            longest_run=lambda: self.longest_run,
            ended=self.ended,
            on_crash=lambda: self.crashes.append(1),
        )

    def heed(self, request):
        """Do as a worker does: what is new changes its state."""
        self.heeded.append(request)
        is_new = request == "quiet" and self.state is WorkerState.RUNNING
        self.state = WorkerState.QUIET if is_new else self.state
        return is_new

    def hold(self, **options):
        """Claim a job and hold its lease."""
        job = claim_one(store_for(), **options)
        self.held.add([job], time.monotonic())
        return job


@pytest.fixture
def patient() -> Patient:
    """Return a heart that does not beat yet."""
    return Patient()


def test_beat_renews_what_is_held(patient, store):
    """From now on."""
    JobFactory()
    job = patient.hold()
    store.shift(20)
    patient.heart._beat()

    lease = Lease.objects.get(pk=job.lease_id)
    assert lease.expires_at - store.now() > timedelta(seconds=25)
    assert patient.held.may_start(job)


def test_beat_says_that_the_worker_lives(patient, store):
    """And what it does; a row that is gone is made anew."""
    patient.heart._beat()

    row = Worker.objects.get()
    assert abs(store.now() - row.seen_at) < timedelta(seconds=10)
    patient.heart._beat()
    row = Worker.objects.get()
    assert (row.memory_bytes, row.running, row.done, row.failed) == (7, 1, 2, 3)


def test_beat_hears_what_is_wanted_and_says_so_at_once(patient, store):
    """Whoever asked sees within the same beat that it was heard."""
    patient.heart._beat()
    store.ask_worker("w", "quiet", by="olga")

    patient.heart._beat()

    assert patient.heeded == ["quiet"]
    assert Worker.objects.get().state == "quiet"


def test_worker_whose_name_was_taken_over_goes_on_under_its_id(patient, caplog):
    """It was silent for so long that another was right to succeed it."""
    taker = WorkerFactory(name=patient.heart._row().name)
    patient.heart._row = lambda: WorkerFactory.build(id="w", name=taker.name)
    with caplog.at_level(logging.WARNING):
        patient.heart._beat()
        patient.heart._beat()

    assert dict(Worker.objects.values_list("pk", "name")) == {taker.pk: taker.name, "w": "w"}
    assert [record.message for record in caplog.records] == [
        f"The name {taker.name!r} was taken over while this worker was silent; it is w now."
    ]


def test_lost_lease_is_noticed(patient, store, caplog):
    """Its jobs go on, but nothing of them will be recorded; it is not renewed any more."""
    JobFactory()
    job = patient.hold()
    store.shift(31)
    store.reap(put_back)
    with caplog.at_level(logging.WARNING):
        patient.heart._beat()

    assert patient.held.queues() == {}
    assert job.lease_id in patient.held.known()
    assert not patient.held.may_start(job)
    assert caplog.records[0].lease_ids == [job.lease_id]


def test_capped_lease_is_noticed(patient, store):
    """Renewals never go past the deadline."""
    JobFactory()
    job = patient.hold(max_lease=timedelta(seconds=40))
    store.shift(25)
    patient.heart._beat()
    assert patient.held.queues()
    store.shift(16)
    patient.heart._beat()

    assert patient.held.queues() == {}
    assert store.loss(job.lease_id, job.id) == ("capped", "")


def test_lease_that_was_settled_meanwhile_is_not_called_lost(patient, caplog, monkeypatch):
    """Only gone."""
    JobFactory()
    job = patient.hold()
    real = patient.store.renew

    def settled_meanwhile(leases):
        Lease.objects.all().delete()
        patient.held.settled(job.lease_id, [job.id])
        return real(leases)

    monkeypatch.setattr(patient.store, "renew", settled_meanwhile)
    with caplog.at_level(logging.WARNING):
        patient.heart._beat()

    assert caplog.records == []
    assert patient.held.known() == set()


def test_heart_beats_until_it_is_ended(patient, settings):
    """Every third of the lease."""
    settings.WORKQUEUE = {"HEARTBEAT": 0.01}
    with running(patient.heart, patient.ended.request):
        wait_until(Worker.objects.exists, "the worker's row is there")
        first = Worker.objects.get().seen_at
        wait_until(lambda: Worker.objects.get().seen_at > first, "another beat")

    assert patient.crashes == []


def test_heart_goes_on_after_an_error(patient, settings, monkeypatch, caplog):
    """The leases run out meanwhile, so it tries sooner (graphile/worker#185)."""
    settings.WORKQUEUE = {"HEARTBEAT": 0.01}
    real, calls = patient.store.prepare, []

    def away():
        calls.append(1)
        if len(calls) < 3:
            raise OperationalError("connection refused")
        return real()

    monkeypatch.setattr(patient.store, "prepare", away)
    with caplog.at_level(logging.WARNING), running(patient.heart, patient.ended.request):
        wait_until(Worker.objects.exists, "a beat after the errors")

    assert "A heartbeat failed" in caplog.text
    assert patient.crashes == []


def test_heart_that_dies_takes_the_worker_with_it(patient, settings, monkeypatch, caplog):
    """It must not go on looking alive."""
    settings.WORKQUEUE = {"HEARTBEAT": 0.01}
    monkeypatch.setattr(patient.store, "prepare", lambda: 1 / 0)
    with running(patient.heart, patient.ended.request):
        wait_until(lambda: patient.crashes, "the crash is told")

    assert "died; the worker stops" in caplog.text
