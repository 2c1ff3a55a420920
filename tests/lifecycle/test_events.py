"""Telling others: only where somebody listens."""

from __future__ import annotations

import pytest
from django.dispatch import Signal

from django_workqueue.domain.contract import task_enqueued, task_finished, task_started
from django_workqueue.domain.steps import idempotency_key
from django_workqueue.lifecycle.events import announce, is_listened_to, job_fields
from tests import samples
from tests.worker.jobs import job as claimed


@pytest.mark.parametrize("signal", [task_enqueued, task_started, task_finished])
def test_djangos_own_receivers_are_nobody(signal):
    """They write a log record for every job, and ours goes to a logger of our own."""
    assert not is_listened_to(signal)


@pytest.mark.parametrize("weak", [True, False])
def test_receiver_is_noticed_when_it_comes_and_when_it_goes(weak):
    """The answer is remembered, but never longer than it is true."""

    def receiver(**_kwargs):
        """Listen."""

    task_started.connect(receiver, weak=weak)
    assert is_listened_to(task_started)
    task_started.disconnect(receiver)
    assert not is_listened_to(task_started)


def test_forgotten_receiver_is_nobody():
    """A weak reference whose function is gone does not listen, once Django has noticed."""
    signal = Signal()

    def connect():
        def receiver(**_kwargs):
            """Listen for a moment."""

        signal.connect(receiver)
        assert is_listened_to(signal)

    connect()
    signal.send(None)

    assert not is_listened_to(signal)


def test_result_is_made_only_for_listeners():
    """It may cost a query."""
    announce(Signal(), samples.add, lambda: pytest.fail("nobody asked"))


def test_receiver_is_told_the_backends_class():
    """As Django documents."""
    signal, told = Signal(), []

    def receiver(sender, task_result, **_kwargs):
        told.append((sender, task_result))

    signal.connect(receiver)
    announce(signal, samples.add, lambda: "the result")

    assert told == [(type(samples.add.get_backend()), "the result")]


def test_record_about_a_job_carries_its_idempotency_key():
    """A vendor's list of requests and our log can be laid side by side, whichever attempt it was."""
    first, again = claimed(tenant="acme"), claimed(tenant="acme")
    again = again._replace(id=first.id, attempts=2, lease_id=7)

    assert job_fields(first)["idempotency_key"] == idempotency_key("acme", first.id)
    assert job_fields(again)["idempotency_key"] == job_fields(first)["idempotency_key"]
