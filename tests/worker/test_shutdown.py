"""Being told to stop: once to end well, twice to end at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from django_workqueue.worker.shutdown import SIGNALS, StopRequest, start_over

from .jobs import wait_until

START_OVER = """
import os, sys
from django_workqueue.worker.shutdown import start_over
print(os.getpid(), sys.argv[1:], flush=True)
if "STARTED" not in os.environ:
    os.environ["STARTED"] = "yes"
    start_over()
"""


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


def test_recycling_is_a_first_request_and_never_a_second():
    """Running jobs may end, whoever asks for it however often."""
    stop = StopRequest()
    stop.recycle("a job cannot be ended")
    stop.recycle("another one, too")

    assert (stop.requested, stop.now, stop.recycling) == (True, False, "a job cannot be ended")


def test_whoever_asks_for_an_end_gets_no_new_beginning():
    """Before or after the process was to start over; the grace time is still that of a first request."""
    before, after = StopRequest(), StopRequest()
    before.request()
    before.recycle("too late")
    after.recycle("a job cannot be ended")
    after.request()

    for stop in (before, after):
        assert (stop.requested, stop.now, stop.recycling) == (True, False, "")
        stop.request()
        assert stop.now


def test_every_request_wakes_the_dispatcher():
    """It may be asleep."""
    stop, wakes = StopRequest(), []
    stop.wake = lambda: wakes.append(1)
    stop.recycle("a job cannot be ended")
    stop.request()
    stop.request()
    stop.crash()

    assert len(wakes) == 4


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


def test_signal_that_came_while_the_process_started_over_is_heard():
    """It is put off until somebody handles it."""
    stop = StopRequest()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        # To this thread: another one, of the test runner say, would not put it off.
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        with stop.on_signals():
            wait_until(lambda: stop.requested, "the request")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


def test_process_that_starts_over_is_the_same_command_and_process():
    """Whoever watches it by its id, a container's init or systemd, need not know."""
    done = subprocess.run(
        [sys.executable, "-c", START_OVER, "--queues", "mail"], capture_output=True, text=True, check=True, timeout=60
    )
    first, second = done.stdout.splitlines()

    assert first == second
    assert first.endswith("['--queues', 'mail']")


def test_process_that_cannot_start_over_goes_on_to_its_end(monkeypatch, caplog):
    """With the signals that it hears, and a word in the log."""
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    start_over()

    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert "could not start over" in caplog.text
