"""Being told to stop: once to end well, twice to end at once."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from django_workqueue.worker.shutdown import SIGNALS, StopRequest

from .jobs import wait_until


def test_first_request_lets_jobs_end_and_the_second_does_not():
    """An impatient operator asks twice (procrastinate-org/procrastinate PR#366)."""
    stop = StopRequest()
    assert (stop.requested, stop.now) == (False, False)
    stop.request()
    assert (stop.requested, stop.now) == (True, False)
    stop.request()

    assert (stop.requested, stop.now, stop.crashed) == (True, True, False)


def test_crash_stops_at_once_and_is_told():
    """By the exit code."""
    stop = StopRequest()
    stop.crash()

    assert (stop.requested, stop.now, stop.crashed) == (True, True, True)


def test_every_request_wakes_the_dispatcher():
    """It may be asleep."""
    stop, wakes = StopRequest(), []
    stop.wake = lambda: wakes.append(1)
    stop.request()
    stop.request()
    stop.crash()

    assert len(wakes) == 3


def test_waiting_ends_with_the_request():
    """Whoever backs off is not to be waited for."""
    stop = StopRequest()
    assert not stop.wait(0)
    assert not stop.wait_for_now(0)
    stop.request()
    assert stop.wait(30)
    assert not stop.wait_for_now(0)
    stop.request()

    assert stop.wait_for_now(30)


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_are_requests(number):
    """Explicitly: process 1 has no handlers by default."""
    stop = StopRequest()
    before = signal.getsignal(number)
    with stop.on_signals():
        os.kill(os.getpid(), number)
        wait_until(lambda: stop.requested, "the request")
        assert not stop.now

    assert signal.getsignal(number) == before


def test_two_signals_are_two_requests():
    """Of either kind."""
    stop = StopRequest()
    with stop.on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: stop.requested, "the first request")
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: stop.now, "the second request")


def test_worker_in_another_thread_leaves_signals_alone():
    """Only the main thread may have handlers."""
    stop, before = StopRequest(), signal.getsignal(signal.SIGTERM)
    seen = []

    def work():
        with stop.on_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)

    assert seen == [before]
