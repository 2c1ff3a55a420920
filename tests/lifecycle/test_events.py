"""Telling others: only where somebody listens."""

from __future__ import annotations

import pytest
from django.dispatch import Signal

from django_workqueue.domain.contract import task_enqueued, task_finished, task_started
from django_workqueue.lifecycle.events import announce, is_listened_to
from tests import samples


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
