"""Run: a claimed job becomes a call, and whatever comes of it becomes plain text."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import enum
import json
import logging
import socket
import threading
from datetime import timedelta

import pytest

from django_workqueue import BackoffPolicy, Reject, RetryAfter, exceptions
from django_workqueue.backend import WorkQueueBackend
from django_workqueue.domain.contract import TaskResultStatus, task_started
from django_workqueue.domain.outcomes import Failed, Settlement, Succeeded
from django_workqueue.domain.states import FailureKind
from django_workqueue.domain.trace import correlation_id
from django_workqueue.lifecycle.failures import MOST_MESSAGE, MOST_TRACEBACK
from django_workqueue.lifecycle.run import (
    Call,
    broken,
    interrupted,
    prepare,
    run,
    run_async,
    unrecordable,
)
from django_workqueue.lifecycle.terms import terms_for
from django_workqueue.models import Failure, Job
from django_workqueue.worker.executors import _settled
from tests import samples
from tests.claims import NO_DELAY, claim_one, fail

pytestmark = pytest.mark.django_db


def attempt(store, *, worker: str = "worker-1") -> Settlement:
    """Claim the next job and run it as an executor does."""
    call = prepare(claim_one(store), store, worker)
    if not isinstance(call, Call):
        return call
    if call.terms.is_async:
        return asyncio.run(_settled(call))
    return contextvars.Context().run(run, call)


def raise_it(store, error: BaseException) -> Settlement:
    """Run a task that raises ``error`` and return the settlement."""

    def body(_value):
        raise error

    return run_with(store, func=body)


def run_with(store, *args, **changes) -> Settlement:
    """Claim a job and run a task that differs in ``changes`` from ``return_it``, with these arguments."""
    samples.return_it.enqueue(1)
    call = prepare(claim_one(store), store, "worker-1")
    task = copy.copy(samples.return_it)
    for name, value in changes.items():
        # Past the validation: the body is no function of a module.
        object.__setattr__(task, name, value)
    terms = terms_for(task, call.job.queue)
    changed = Call(call.job, terms, list(args) or call.args, call.kwargs, {}, store, "worker-1")
    return contextvars.Context().run(run, changed)


# -- what is handed in -------------------------------------------------------------------------------------------------


def test_task_is_called_with_what_was_enqueued(store):
    """Exactly the body, and the result as JSON."""
    samples.send.using(queue_name="default", tenant="").enqueue("a@example.com", copy=True)

    settlement = attempt(store)

    assert json.loads(settlement.outcome.result) == {"address": "a@example.com", "copy": True}
    assert settlement.outcome.run_seconds >= 0


def test_task_of_django_tasks_runs_too(store):
    """Whoever knows ``django.tasks`` alone, with and without its context."""
    samples.plain.enqueue(6, 7)
    assert attempt(store).outcome.result == "42"
    samples.plain_with_context.enqueue()
    assert attempt(store).outcome.result == "1"


def test_coroutine_function_is_awaited(store):
    """In the loop, by the worker's event loop thread."""
    samples.add_async.enqueue(1, 2)

    assert attempt(store).outcome.result == "3"


def test_coroutine_that_a_function_returns_is_awaited_too(store):
    """A decorator may hide that it is one."""
    samples.return_coroutine.enqueue(1, 2)

    assert attempt(store).outcome.result == "3"


def test_context_tells_the_delivery(store):
    """Attempt, error of the one before, and the caller's metadata."""
    result = samples.describe.using(metadata={"user": 3}).enqueue()
    fail(store, claim_one(store), message="no paper")

    assert json.loads(attempt(store).outcome.result) == {
        "attempt": 2,
        "last_error": "OutOfPaperError: no paper",
        "job_id": result.id,
        "metadata": {"user": 3},
    }


def test_ctx_parameter_gets_the_context(store):
    """One that does not ask is called as before."""
    samples.describe_ctx.enqueue("hello")
    assert attempt(store).outcome.result == '"hello 1"'
    samples.injected.enqueue()
    assert attempt(store).outcome.result == '"from an injector"'


def test_context_knows_the_result_as_django_tasks_has_it(store):
    """Read from the database when it is asked for."""
    result = samples.describe.enqueue()
    call = prepare(claim_one(store, worker="web1:4"), store, "web1:4")
    context = call.args[0]

    assert context.task_result.id == result.id
    assert context.task_result.status == TaskResultStatus.RUNNING
    assert (context.attempt, context.max_attempts, context.is_last_attempt) == (1, 5, False)


def test_trace_of_the_caller_is_set_around_the_run(store):
    """What the task enqueues belongs to the same request."""
    token = correlation_id.set("req-1")
    samples.read_trace.enqueue()
    correlation_id.reset(token)

    assert attempt(store).outcome.result == '"req-1"'
    assert correlation_id.get() is None


# -- what cannot be called ---------------------------------------------------------------------------------------------


def test_unknown_task_is_no_crash(store):
    """The worker that dies of one dies at each start (collectiveidea/delayed_job#77)."""
    samples.add.enqueue(1, 2)
    Job.objects.update(task="tests.samples.was_here_once")

    outcome = attempt(store).outcome

    assert outcome.kind == FailureKind.UNKNOWN_TASK
    assert "tests.samples.was_here_once" in outcome.message
    assert "ALIASES" in outcome.message


@pytest.mark.parametrize("column", ["args", "kwargs", "metadata"])
@pytest.mark.parametrize("text", ["{broken", "", "[}", '"text"', "\x01"])
def test_row_that_cannot_be_decoded_is_no_crash(store, column, text):
    """The job is kept with its raw payload and the reason (collectiveidea/delayed_job#903)."""
    samples.add.enqueue(1, 2)
    Job.objects.update(**{column: text})

    outcome = attempt(store).outcome

    assert outcome.kind == FailureKind.UNDECODABLE
    assert "cannot be decoded" in outcome.message
    assert outcome.error_class == "django_workqueue.exceptions.PayloadError"


def test_arguments_that_no_longer_fit_fail_that_job_clearly(store):
    """The signature changed between two deploys (OctopusDeploy/Issues#3880)."""
    samples.add.enqueue(1, 2)
    Job.objects.update(args="[1]")

    outcome = attempt(store).outcome

    assert outcome.kind == FailureKind.ERROR
    assert outcome.error_class == "django_workqueue.exceptions.ArgumentsDoNotFitError"
    assert "arguments do not fit tests.samples.add" in outcome.message


# -- what is raised ----------------------------------------------------------------------------------------------------


def test_error_becomes_text(store):
    """Class path, message and traceback, with the place in the task."""
    samples.fail.enqueue("no paper")

    outcome = attempt(store).outcome

    assert (outcome.kind, outcome.error_class) == (FailureKind.ERROR, "tests.samples.OutOfPaperError")
    assert outcome.message == "no paper"
    assert "samples.py" in outcome.traceback
    assert outcome.traceback.rstrip().endswith("OutOfPaperError: no paper")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("reject", FailureKind.REJECTED),
        ("reject_on", FailureKind.REJECTED),
        ("not_retryable", FailureKind.REJECTED),
        ("retry_after", FailureKind.ERROR),
        ("exit", FailureKind.ERROR),
        ("interrupt", FailureKind.ERROR),
    ],
)
def test_nothing_that_a_task_raises_passes(store, name, kind):
    """Not even SystemExit: a job cannot end its worker (RealOrangeOne/django-tasks#190)."""
    samples.fail_by.enqueue(name)

    assert attempt(store).outcome.kind == kind


def test_cancelled_error_of_a_coroutine_is_its_own_failure(store):
    """It ended a claim loop silently elsewhere."""
    samples.cancel_itself.enqueue()

    outcome = attempt(store).outcome

    assert outcome.error_class == "asyncio.exceptions.CancelledError"


def test_cancellation_from_outside_passes(store):
    """The loop that cancels must be obeyed."""
    samples.wait_for_ever.enqueue()
    call = prepare(claim_one(store), store, "worker-1")

    async def cancel():
        task = asyncio.create_task(run_async(call))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


def test_delay_that_the_task_asks_for_is_kept(store):
    """``RetryAfter`` knows better than the policy."""
    samples.fail_by.enqueue("retry_after")

    outcome = attempt(store).outcome

    assert (outcome.retry_after, outcome.message) == (timedelta(seconds=90), "busy")


def test_error_that_cannot_be_rebuilt_crosses_as_text(store):
    """Required arguments, a local class, an open socket inside (celery/celery#6990)."""

    class LocalError(Exception):
        def __init__(self, first, second, *, sock):
            self.sock = sock
            super().__init__(f"{first} and {second}")

    with socket.socket() as sock:
        settlement = raise_it(store, LocalError("this", "that", sock=sock))

    assert settlement.outcome.error_class.endswith("LocalError")
    assert store.fail(settlement, NO_DELAY, worker="worker-1", last=True)
    assert Failure.objects.get().message == "this and that"


class SpeechlessError(Exception):
    """Cannot say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("a\x00b"), "a\N{SYMBOL FOR NULL}b"),
        (ValueError("x\ud800y"), "x?y"),
        (ValueError(), ""),
        (SpeechlessError(), "(its text could not be made: RuntimeError)"),
    ],
    ids=["nul", "surrogate", "empty", "speechless"],
)
def test_message_can_be_stored_by_every_database(store, error, expected):
    """An error about bad text holds bad text."""
    outcome = raise_it(store, error).outcome

    assert outcome.message == expected
    assert "\x00" not in outcome.traceback
    outcome.traceback.encode()


def test_long_message_and_traceback_are_bounded(store):
    """Beginning and end are kept, and what is missing is said."""
    outcome = raise_it(store, ValueError("begin" + "x" * 100_000 + "end")).outcome

    assert len(outcome.message) < MOST_MESSAGE + 100
    assert len(outcome.traceback) < MOST_TRACEBACK + 100
    assert outcome.message.startswith("begin")
    assert outcome.message.endswith("end")
    assert "characters left out" in outcome.message


def test_chained_errors_are_in_the_traceback(store):
    """The cause is what one looks for."""
    error = ValueError("outer")
    error.__cause__ = KeyError("inner")

    assert "inner" in raise_it(store, error).outcome.traceback


@pytest.mark.parametrize("error", [Reject("no"), RetryAfter(1), exceptions.LeaseLostError(1, "taken")])
def test_our_own_errors_steer_by_what_they_say(store, error):
    """A lost lease rejects no job: another attempt counts, or, by a clock that was set back, this one does."""
    kind = raise_it(store, error).outcome.kind

    assert (kind == FailureKind.REJECTED) == isinstance(error, Reject)


# -- results -----------------------------------------------------------------------------------------------------------


class Level(enum.IntEnum):
    """A number with a name."""

    HIGH = 3


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        (Level.HIGH, 3),
        ({"a": (1,)}, {"a": [1]}),
        (enum.StrEnum("Colour", ["RED"]).RED, "red"),
        (True, True),
        (None, None),
    ],
)
def test_results_become_plain_json(store, value, stored):
    """A result is only read: a job must not die of having returned a tuple."""
    assert json.loads(run_with(store, value).outcome.result) == stored


@pytest.mark.parametrize("value", [object(), float("nan"), {1: 2}, "a\x00b", b"bytes"])
def test_result_that_cannot_be_stored_fails_the_attempt_by_name(store, value):
    """It would be no other the next time."""
    outcome = run_with(store, value).outcome

    assert outcome.kind == FailureKind.REJECTED
    assert outcome.message.startswith("the result")


def test_result_that_contains_itself_is_no_crash(store):
    """A failed attempt like any other."""
    loop = []
    loop.append(loop)

    assert isinstance(run_with(store, loop).outcome, Failed)


def test_result_that_nobody_keeps_may_be_anything(store):
    """Without retention it is dropped, so it cannot fail the job."""
    outcome = run_with(store, object(), retention=timedelta()).outcome

    assert outcome == Succeeded("null", outcome.run_seconds)


# -- policies on the settlement ----------------------------------------------------------------------------------------


def test_settlement_carries_the_queues_policies(store, settings):
    """Unless the task has its own."""
    settings.WORKQUEUE = {"RETENTION": 60, "BACKOFF": 7}
    samples.add.enqueue(1, 2)

    settlement = attempt(store)

    assert settlement.retention == timedelta(seconds=60)
    assert settlement.backoff == BackoffPolicy(base=timedelta(seconds=7))


def test_settlement_carries_the_tasks_own_policies(store, settings):
    """A first delay goes into the queue's policy; its cap goes up where it must."""
    settings.WORKQUEUE = {"BACKOFF_CAP": 5, "JITTER": 0.5}
    samples.patient.enqueue()

    settlement = attempt(store)

    assert settlement.retention == timedelta()
    assert settlement.backoff == BackoffPolicy(base=timedelta(minutes=1), cap=timedelta(minutes=1), jitter=0.5)


def test_settlements_that_no_run_made(store):
    """A stop, an error around the job, and a success that the database would not take."""
    samples.add.enqueue(1, 2)
    job = claim_one(store)

    assert interrupted(job, 2.0).outcome.kind == FailureKind.INTERRUPTED
    assert broken(job, ValueError("no")).outcome.kind == FailureKind.ERROR
    assert "could not be stored" in unrecordable(job).outcome.message


# -- signals and log ---------------------------------------------------------------------------------------------------


@pytest.fixture
def started():
    """Collect what receivers of ``task_started`` are told."""
    calls = []

    def receiver(sender, task_result, **_kwargs):
        calls.append((sender, task_result, threading.current_thread()))

    task_started.connect(receiver)
    yield calls
    task_started.disconnect(receiver)


@pytest.mark.parametrize("task", [samples.add, samples.plain])
def test_started_signal_describes_the_running_attempt(store, started, task):
    """Sender is the backend's class; the worker is named."""
    result = task.enqueue(1, 2)
    attempt(store, worker="web1:4")

    [(sender, told, _)] = started
    assert sender is WorkQueueBackend
    assert (told.id, told.status, told.worker_ids) == (result.id, TaskResultStatus.RUNNING, ["web1:4"])
    assert told.args == [1, 2]


@pytest.mark.django_db(transaction=True)
def test_started_signal_of_a_coroutine_comes_in_a_thread(store, started):
    """Its receivers may use the ORM, and so does the description of a job that failed before."""
    samples.add_async.enqueue(1, 2)
    fail(store, claim_one(store))
    token = correlation_id.set("req-1")
    samples.add_async.using(tenant="traced").enqueue(1, 2)
    correlation_id.reset(token)

    assert attempt(store).outcome.result == "3"
    call = prepare(claim_one(store, "traced"), store, "worker-1")
    assert asyncio.run(_settled(call)).outcome.result == "3"

    assert [told.attempts for _, told, _ in started] == [2, 1]
    assert {thread for _, _, thread in started}.isdisjoint({threading.main_thread()})


def test_started_signal_tells_earlier_errors(store, started):
    """A second attempt knows the first."""
    samples.add.enqueue(1, 2)
    fail(store, claim_one(store))
    attempt(store, worker="web2:1")

    [(_, told, _)] = started
    assert (len(told.errors), told.attempts, told.worker_ids) == (1, 2, ["worker-1", "web2:1"])


def test_receiver_that_raises_does_not_fail_the_job(store, caplog):
    """Somebody else's metrics are no fault of the task."""

    def receiver(**_kwargs):
        raise RuntimeError("metrics are down")

    task_started.connect(receiver)
    try:
        samples.add.enqueue(1, 2)
        with caplog.at_level(logging.CRITICAL):
            outcome = attempt(store).outcome
    finally:
        task_started.disconnect(receiver)

    assert outcome.result == "3"


def test_log_names_the_job_and_never_its_arguments(store, caplog):
    """Identifiers, so that a log can be searched, and nothing that a customer typed."""
    with caplog.at_level(logging.DEBUG, logger="django_workqueue"):
        result = samples.return_it.using(dedupe_key="order-7", tenant="").enqueue("secret")
        attempt(store)

    [record] = [each for each in caplog.records if each.name == "django_workqueue.run"]
    assert (record.job_id, record.task, record.queue, record.attempt) == (
        result.id,
        "tests.samples.return_it",
        "default",
        1,
    )
    assert record.key == "order-7"
    assert "secret" not in caplog.text
