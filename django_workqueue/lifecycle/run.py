"""Run: turn a claimed job into a call, and whatever comes of it into plain text."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone

from ..conf import get_settings
from ..domain.context import JobContext
from ..domain.contract import AnyTask, AnyTaskResult, TaskResultStatus, task_started
from ..domain.encoding import decode, encode, plain
from ..domain.hooks import around, around_async
from ..domain.link import JobLink, NoLink
from ..domain.outcomes import Cancelled, ClaimedJob, Failed, Outcome, Settlement, Succeeded
from ..domain.registry import check_fit, with_context
from ..domain.states import FailureKind
from ..domain.trace import restore_trace
from ..exceptions import (
    JobCancelledError,
    JobStoppedError,
    JobTimeoutError,
    LeaseLostError,
    PayloadError,
    Reject,
    RetryAfter,
    TaskNotRegisteredError,
)
from ..store import Store
from .atomic import atomically
from .events import announce, is_listened_to, job_fields
from .failures import failed, timed_out, traceback_of
from .once import Ledger
from .results import load, of_attempt
from .settle import complete_within
from .terms import Terms, terms_of

logger = logging.getLogger("django_workqueue.run")


class Hold(Protocol):
    """The hold that others have on a running body."""

    def take(self, call: Call) -> None:
        """Begin a body in this thread: from here on it may be ended by a JobStoppedError that is raised in it."""

    def let_go(self) -> None:
        """End it: from here on nothing is raised any more. Safe to repeat."""


Within = Callable[[], AbstractContextManager[None]]
OnError = Callable[[BaseException], None]


class Call(NamedTuple):
    """A claimed job, ready to be called."""

    job: ClaimedJob
    terms: Terms
    args: list[Any]
    kwargs: dict[str, Any]
    metadata: Mapping[str, Any]
    store: Store
    worker: str
    context: JobContext | None = None
    """There where the task or a run hook asks for it."""

    @property
    def task(self) -> AnyTask:
        """The task that is called."""
        return self.terms.task


def broken(job: ClaimedJob, error: BaseException) -> Settlement:
    """Return the settlement of a job around which something raised that no task's code is to blame for."""
    # The class alone: the text, which may quote arguments, is in the failure's row.
    logger.error("Job %s of %s could not be run: %s.", job.id, job.task, type(error).__name__, extra=job_fields(job))
    return _settlement(job, None, failed(error, FailureKind.ERROR))


def prepare(
    job: ClaimedJob,
    store: Store,
    worker: str,
    *,
    load_result: Callable[[], AnyTaskResult] | None = None,
    link_to: Callable[[ClaimedJob], JobLink] | None = None,
) -> Call | Settlement:
    """
    Return how ``worker`` calls the job's task, or, when that cannot be known, how the attempt failed.

    ``load_result`` answers the task that asks for its own result; None looks it up in the store. ``link_to`` makes the
    link of the job's context; None leaves it without.
    """
    try:
        terms = terms_of(job.task, job.queue)
    except TaskNotRegisteredError as error:
        return _settlement(job, None, failed(error, FailureKind.UNKNOWN_TASK))
    try:
        args, kwargs = decode(job.args, list), decode(job.kwargs, dict)
        metadata = decode(job.metadata, dict)
    except ValueError as error:
        undecodable = PayloadError("The stored job", f"cannot be decoded: {error}.")
        return _settlement(job, terms, failed(undecodable, FailureKind.UNDECODABLE))
    try:
        check_fit(terms.task, args, kwargs)
    except TypeError as error:
        return _settlement(job, terms, failed(error, FailureKind.ERROR))
    context = None
    if terms.wants_context or terms.run_hooks:
        answer = load_result or (lambda: load(store, job.id, terms.task.backend))
        ledger = Ledger(store, job, worker, depth=store.transaction_depth() + terms.is_atomic)
        context = _context(job, metadata, answer, ledger, link_to(job) if link_to else NoLink())
    if terms.wants_context:
        args, kwargs = with_context(terms.task, args, kwargs, context)
    return Call(job, terms, args, kwargs, metadata, store, worker, context)


def run(
    call: Call, *, within: Within | None = None, on_error: OnError | None = None, hold: Hold | None = None
) -> Settlement:
    """
    Call the task in this thread. Nothing that it raises passes, not even SystemExit; ``on_error`` is told of it.

    Call it in a context (contextvars) of its own: the job's trace is set in it, and is not taken back. ``within``
    surrounds the body; what that raises is the body's, and so is what the project's run hooks raise. ``hold`` is taken
    meanwhile.
    """
    begun = time.monotonic()
    _begin(call)
    if is_listened_to(task_started):
        _announce_start(call)
    outcome: Outcome
    committed: Succeeded | None = None
    try:
        if call.terms.is_atomic:
            outcome, committed = _atomic_outcome(call, begun, within or contextlib.nullcontext, hold)
        else:
            outcome = _succeeded(_held_value(call, within, hold), begun, call)
    except BaseException as error:  # noqa: BLE001 - a job must not end its worker
        if hold is not None:
            # What arrived while it was let go may have kept that from its end.
            hold.let_go()
        outcome = _raised(error, call, begun)
        if on_error is not None:
            on_error(error)
    return _settlement(call.job, call.terms, outcome, committed)


async def run_async(call: Call) -> Settlement:
    """Await the task in this event loop, as ``run``. Nothing that it raises passes; cancellation from outside does."""
    _begin(call)
    # In a thread, as receivers may use the ORM, and so does the description of a job that failed before.
    if is_listened_to(task_started):
        await sync_to_async(_announce_start)(call)
    begun = time.monotonic()
    try:
        value = await (_surrounded(call) if call.terms.run_hooks else call.task.func(*call.args, **call.kwargs))
        outcome: Outcome = _succeeded(value, begun, call)
    except asyncio.CancelledError as error:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        outcome = _raised(error, call, begun)
    except BaseException as error:  # noqa: BLE001 - a job must not end its worker
        outcome = _raised(error, call, begun)
    return _settlement(call.job, call.terms, outcome)


def interrupted(job: ClaimedJob, run_seconds: float) -> Settlement:
    """Return the settlement of a job that its worker had to leave."""
    message = "The worker was stopped before the job ended; the attempt is not counted."
    return _settlement(job, None, Failed(kind=FailureKind.INTERRUPTED, message=message, run_seconds=run_seconds))


def unrecordable(job: ClaimedJob) -> Settlement:
    """Return the settlement of a job that succeeded, but whose success the database would not store."""
    message = "The job succeeded, but its result could not be stored; see the worker's log."
    return _settlement(job, None, Failed(kind=FailureKind.ERROR, message=message))


def stopped(call: Call, why: type[JobStoppedError], run_seconds: float, stack: str = "") -> Settlement:
    """
    Return the settlement of a body that was ended from outside, or is going to end with its process.

    ``stack`` says where it was.
    """
    outcome = (
        Cancelled(run_seconds)
        if issubclass(why, JobCancelledError)
        else timed_out(call.terms.timeout, run_seconds, stack)
    )
    return _settlement(call.job, call.terms, outcome)


def unstarted(job: ClaimedJob) -> Settlement:
    """Return the settlement of a job that was to be cancelled before its body began."""
    return _settlement(job, None, Cancelled())


def _held_value(call: Call, within: Within | None, hold: Hold | None) -> Any:
    try:
        if hold is not None:
            hold.take(call)
        plain = within is None and not call.terms.run_hooks
        return _value(call) if plain else _surrounded_value(call, within or contextlib.nullcontext)
    finally:
        if hold is not None:
            hold.let_go()


def _atomic_outcome(call: Call, begun: float, within: Within, hold: Hold | None) -> tuple[Outcome, Succeeded]:
    """
    Call the task in a transaction that records its success as well; a refused record rolls all of it back.

    Returns the outcome with the success, which differ where the commit gave no answer.
    """
    success, doubt = atomically(call.store, call.job, lambda: _recorded(call, begun, hold), within)
    return (success if doubt is None else _raised(doubt, call, begun)), success


def _recorded(call: Call, begun: float, hold: Hold | None) -> Succeeded:
    """Return the success of the body, recorded in the transaction that is open around it."""
    success = _succeeded(_held_value(call, None, hold), begun, call)
    if call.job.lease_id:
        call.store.pin()
        complete_within(call.store, _settlement(call.job, call.terms, success), worker=call.worker)
    return success


def _value(call: Call) -> Any:
    value = call.task.func(*call.args, **call.kwargs)
    if value is not None and inspect.isawaitable(value):
        value = async_to_sync(_await)(value)
    return value


def _surrounded_value(call: Call, within: Within) -> Any:
    value = None
    if call.terms.is_async:
        with within():
            value = async_to_sync(_surrounded)(call)
    else:
        with around(call.terms.run_hooks, call.context), within():
            value = _value(call)
    return value


async def _surrounded(call: Call) -> Any:
    async with around_async(call.terms.run_hooks, call.context):
        return await call.task.func(*call.args, **call.kwargs)


async def _await(value: Any) -> Any:
    return await value


def _begin(call: Call) -> None:
    restore_trace(call.job.id, call.metadata)
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("Job %s of %s starts.", call.job.id, call.job.task, extra=job_fields(call.job))


def _announce_start(call: Call) -> None:
    announce(task_started, call.task, lambda: _started(call))


def _started(call: Call) -> AnyTaskResult:
    return of_attempt(
        call.store,
        call.job,
        call.task,
        status=TaskResultStatus.RUNNING,
        worker=call.worker,
        started_at=timezone.now(),
    )


def _context(
    job: ClaimedJob,
    metadata: Mapping[str, Any],
    load_result: Callable[[], AnyTaskResult],
    ledger: Ledger,
    link: JobLink,
) -> JobContext:
    return JobContext(
        job_id=job.id,
        task=job.task,
        queue=job.queue,
        tenant=job.tenant,
        attempt=job.attempts,
        max_attempts=job.max_attempts,
        last_error=job.last_error or None,
        metadata=metadata,
        load_result=load_result,
        ledger=ledger,
        link=link,
    )


def _succeeded(value: Any, begun: float, call: Call) -> Succeeded:
    if value is None or not (call.terms.retention or call.job.workflow):
        return Succeeded("null", time.monotonic() - begun)
    result = encode(plain(value), "the result", get_settings().max_payload_bytes)
    return Succeeded(result=result, run_seconds=time.monotonic() - begun)


def _raised(error: BaseException, call: Call, begun: float) -> Failed | Cancelled:
    run_seconds = time.monotonic() - begun
    if _is_final(error, call.task):
        return failed(error, FailureKind.REJECTED, run_seconds=run_seconds)
    if isinstance(error, JobCancelledError):
        return Cancelled(run_seconds)
    if isinstance(error, JobTimeoutError):
        return timed_out(call.terms.timeout, run_seconds, traceback_of(error))
    retry_after = error.delay if isinstance(error, RetryAfter) else None
    return failed(error, FailureKind.ERROR, run_seconds=run_seconds, retry_after=retry_after)


def _is_final(error: BaseException, task: AnyTask) -> bool:
    """Whether another attempt is pointless."""
    # A lost lease says nothing about the job. By a clock that was set back it may even hold again.
    if isinstance(error, LeaseLostError):
        return False
    return isinstance(error, (Reject, *getattr(task, "reject_on", ()))) or getattr(error, "retryable", True) is False


def _settlement(
    job: ClaimedJob, terms: Terms | None, outcome: Outcome, committed: Succeeded | None = None
) -> Settlement:
    """Return the settlement by the task's terms, or by the queue's where the task plays no part."""
    policies = terms or get_settings().queue(job.queue)
    return Settlement(job, outcome, policies.backoff, policies.retention, committed)
