"""The hold on a running body: it can be ended from outside, and nothing but it."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from django.db import connections

from django_workqueue.domain.outcomes import Cancelled, Failed, Succeeded
from django_workqueue.domain.states import FailureKind
from django_workqueue.exceptions import JobCancelledError, JobStoppedError, JobTimeoutError
from django_workqueue.store.cancel import CancelRequest
from django_workqueue.worker.grip import Grip
from tests import endless, samples, traces

from .jobs import job, wait_until
from .test_executors import Slots

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


BODIES = 1000


class Alone:
    """Watches over nothing."""

    def watch(self, due):
        """Look at nothing."""

    def give_up(self, call, why, stack):
        """Never asked."""


class Terms:
    """No timeout."""

    timeout = None


class AnyCall:
    """Something to hold."""

    terms = Terms()


@pytest.fixture
def slot():
    """Return one slot, so that one job follows the other in the same thread."""
    endless.release.clear()
    endless.cleaned.clear()
    made = Slots(1)
    yield made
    made.end()


@contextmanager
def another_thread(work):
    """Run ``work`` beside the block."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(60)
        assert not thread.is_alive()


@contextmanager
def hurry():
    """Let threads take turns after every instruction or two."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def job_of(task, *args, **columns):
    """Return a claimed job of ``task``."""
    return job(task=task.module_path, args=str(list(args)).replace("'", '"'), **columns)


def strike_and_go_on(grip, call):
    """Strike the body that runs here; the error arrives at one of the next instructions."""
    grip.strike(call, JobTimeoutError)
    for _ in range(1000):
        time.sleep(0)


# -- the handshake -----------------------------------------------------------------------------------------------------


@pytest.fixture
def _without_finalisers():
    """Let nothing be collected meanwhile: in a callback of the collector Python drops what a strike raises there."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_without_finalisers")
def test_strike_ends_a_body_and_never_what_comes_after_it():
    """
    Thousands of bodies, each struck somewhere around its end: in it, or not at all.

    The error may be on its way when the body returns; it must not arrive later (rq/rq#323).
    """
    grip, ends, calls = Grip(Alone()), [], []

    def strike():
        while len(ends) < BODIES:
            if calls:
                grip.strike(calls[-1], JobTimeoutError)

    def body(call):
        calls.append(call)
        return sum(range(random.randrange(20_000)))

    with hurry(), another_thread(strike):
        for _ in range(BODIES):
            call = AnyCall()
            try:
                try:
                    grip.take(call)
                    body(call)
                    end = "returned"
                finally:
                    grip.let_go()
            except JobTimeoutError:
                grip.let_go()
                end = "struck"
            # Whatever comes now is the worker's own, and would end its thread.
            sum(range(500))
            ends.append(end)

    assert set(ends) == {"struck", "returned"}
    assert (grip.call, grip.struck, grip.due) == (None, None, None)


def test_body_that_is_over_is_not_struck():
    """Nor the one that runs in its place by now."""
    grip, old, new = Grip(Alone()), AnyCall(), AnyCall()
    grip.take(old)
    grip.let_go()
    grip.strike(old, JobTimeoutError)
    grip.take(new)
    grip.strike(old, JobTimeoutError)
    sum(range(10_000))
    grip.let_go()

    assert not grip.was_struck


def test_body_is_struck_once():
    """After one error has arrived, no other is on its way: whoever cleans up is not hit again."""
    grip, call = Grip(Alone()), AnyCall()
    grip.take(call)
    with pytest.raises(JobTimeoutError):
        strike_and_go_on(grip, call)
    grip.strike(call, JobCancelledError)
    sum(range(10_000))

    assert grip.struck is JobTimeoutError
    grip.let_go()


# -- timeouts ----------------------------------------------------------------------------------------------------------


def test_nothing_watches_while_nothing_has_a_timeout(slot):
    """The thread is there from the first one on."""
    slot.run(job_of(samples.add, 1, 2), job_of(samples.add_async, 1, 2))
    assert not slot.supervision.watchdog.is_alive()

    slot.run(job_of(endless.quick))
    assert slot.supervision.watchdog.is_alive()


@pytest.mark.parametrize("endless_one", [endless.compute, endless.wait_async], ids=["thread", "coroutine"])
def test_body_that_exceeds_its_time_ends_as_a_timeout(slot, endless_one):
    """With its limit and its traceback; the slot goes on to the next job as if nothing had been."""
    ended, after, later = slot.run(job_of(endless_one), job_of(samples.add, 1, 2), job_of(samples.add_async, 1, 2))

    assert (ended.kind, ended.error_class) == (FailureKind.TIMEOUT, "django_workqueue.exceptions.JobTimeoutError")
    assert ended.message == "The attempt ran longer than its timeout of 0.2 s."
    assert ended.run_seconds >= 0.2
    assert (after.result, later.result) == ("3", "3")
    assert (slot.crashes, slot.recycled) == ([], [])


def test_traceback_of_a_timeout_says_where_the_thread_was(slot):
    """It is what a person looks for first."""
    [ended] = slot.run(job_of(endless.compute))

    assert "in compute" in ended.traceback


@pytest.mark.parametrize("ending", ["clean_up", "return", "raise", "reject"])
def test_body_may_have_the_last_word(slot, ending):
    """It cleans up and lets the error pass, or ends otherwise: then that counts."""
    [ended] = slot.run(job_of(endless.catch, ending))

    kinds = {"clean_up": FailureKind.TIMEOUT, "raise": FailureKind.ERROR, "reject": FailureKind.REJECTED}
    if ending == "return":
        assert isinstance(ended, Succeeded)
    else:
        assert isinstance(ended, Failed)
        assert ended.kind == kinds[ending]


def test_timeout_that_is_to_be_final_is(slot):
    """By ``reject_on``."""
    [ended] = slot.run(job_of(endless.compute_once))

    assert ended.kind == FailureKind.REJECTED


def test_connection_is_not_used_again_after_a_strike(slot):
    """The error may have come between a question and its answer."""
    first, ended, second = slot.run(
        job_of(endless.connection_id), job_of(endless.compute_with_connection), job_of(endless.connection_id)
    )

    assert ended.kind == FailureKind.TIMEOUT
    assert first.result != second.result


@pytest.mark.parametrize("stuck", [endless.swallow, endless.sleep], ids=["swallows", "native"])
def test_body_that_does_not_end_is_given_up(slot, settings, stuck):
    """Its worker is to start over; the outcome is there for when it goes, with the place where the thread is."""
    settings.WORKQUEUE = {"TIMEOUT_GRACE": 0.2}
    one = job_of(stuck)
    slot.board.put([one])

    wait_until(lambda: slot.recycled, "the worker to be asked to start over")

    assert str(one.id) in slot.recycled[0]
    outcome = slot.board.abandoned[one.id].outcome
    assert (outcome.kind, outcome.run_seconds > 0.2) == (FailureKind.TIMEOUT, True)
    assert f"in {stuck.func.__name__}" in outcome.traceback
    endless.release.set()
    wait_until(lambda: slot.board.unsettled, "the body to end after all")


# -- cancelling --------------------------------------------------------------------------------------------------------


def ask(slot, one, *, force=False):
    """Pass on that a running job is to be cancelled, as the heartbeat does."""
    wait_until(lambda: slot.executors[0].grip.call is not None, "the body to begin")
    for _ in range(3):
        slot.supervision.cancels.replace({CancelRequest(one.id, one.lease_id, force)})


def test_coroutine_that_is_to_be_cancelled_is(slot):
    """Once, so that it can clean up in peace."""
    one = job_of(endless.wait_cleaning_up)
    with another_thread(lambda: ask(slot, one)):
        [ended] = slot.run(one)

    assert isinstance(ended, Cancelled)
    assert endless.cleaned == ["begun", "done"]


@pytest.mark.parametrize("why", [JobCancelledError, JobTimeoutError])
def test_coroutine_that_has_returned_is_not_cancelled_as_it_cleans_up(slot, monkeypatch, why):
    """It has succeeded: to run it again would do everything twice."""
    one, begun, go_on, passed_on = job_of(traces.leave_async_transaction), *(threading.Event() for _ in range(3))
    close = connections.close_all

    def close_in_the_end():
        begun.set()
        assert go_on.wait(60)
        close()

    def strike():
        assert begun.wait(60)
        grip = slot.executors[0].grip
        grip.strike(grip.call, why)
        # Behind the cancelling, in the same loop.
        grip.task.get_loop().call_soon_threadsafe(passed_on.set)
        assert passed_on.wait(60)
        go_on.set()

    monkeypatch.setattr(connections, "close_all", close_in_the_end)
    with another_thread(strike):
        [ended] = slot.run(one)

    assert isinstance(ended, Succeeded)


def test_thread_that_is_to_be_cancelled_hears_and_ends(slot):
    """By ``cancelled`` of its context; nothing is raised in it."""
    one = job_of(endless.until_cancelled)
    with another_thread(lambda: ask(slot, one)):
        [ended] = slot.run(one)

    assert isinstance(ended, Cancelled)
    assert not slot.executors[0].grip.was_struck


def test_thread_that_is_to_be_cancelled_by_force_is_struck(slot):
    """Whether it listens or not."""
    one = job_of(endless.compute_for_ever)
    with another_thread(lambda: ask(slot, one, force=True)):
        [ended] = slot.run(one)

    assert isinstance(ended, Cancelled)


def test_job_that_is_to_be_cancelled_does_not_begin(slot):
    """It was claimed, and waited for its slot when the request came."""
    one = job_of(samples.add, 1, 2)
    slot.supervision.cancels.replace({CancelRequest(one.id, one.lease_id, force=False)})

    [ended] = slot.run(one)

    assert isinstance(ended, Cancelled)


def test_request_to_an_earlier_attempt_means_no_later_one(slot):
    """A job that was requeued is wanted again."""
    one = job_of(samples.add, 1, 2)
    slot.supervision.cancels.replace({CancelRequest(one.id, one.lease_id + 1, force=False)})

    [ended] = slot.run(one)

    assert isinstance(ended, Succeeded)


def test_body_may_cancel_its_own_job(slot):
    """It has found out by itself that nobody wants it any more."""
    assert isinstance(*slot.run(job_of(endless.give_up)), Cancelled)


def test_coroutine_that_cancels_itself_was_not_cancelled(slot):
    """That is its own failure, as before."""
    [ended] = slot.run(job_of(samples.cancel_itself))

    assert ended.error_class == f"{asyncio.CancelledError.__module__}.CancelledError"


def test_errors_that_end_a_body_pass_code_that_catches_all_exceptions():
    """As asyncio.CancelledError does."""
    for error in (JobStoppedError, JobTimeoutError, JobCancelledError):
        assert not issubclass(error, Exception)
