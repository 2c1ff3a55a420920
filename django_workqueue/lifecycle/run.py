"""Run: turn a claimed job into a call, and whatever comes of it into plain text."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, NamedTuple

from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone

from ..conf import get_settings
from ..domain.context import JobContext
from ..domain.contract import AnyTask, AnyTaskResult, TaskResultStatus, task_started
from ..domain.encoding import decode, encode, plain
from ..domain.hooks import around, around_async
from ..domain.outcomes import ClaimedJob, Failed, Settlement, Succeeded
from ..domain.registry import check_fit, with_context
from ..domain.states import FailureKind
from ..domain.trace import restore_trace
from ..exceptions import PayloadError, Reject, RetryAfter, TaskNotRegisteredError
from ..store import Store
from .events import announce, is_listened_to, job_fields
from .once import Ledger
from .results import load, of_attempt
from .terms import Terms, terms_of

logger = logging.getLogger("django_workqueue.run")

MOST_MESSAGE = 2_000
MOST_TRACEBACK = 20_000


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
    return _settlement(job, None, _failed(error, FailureKind.ERROR))


def prepare(
    job: ClaimedJob, store: Store, worker: str, *, load_result: Callable[[], AnyTaskResult] | None = None
) -> Call | Settlement:
    """
    Return how ``worker`` calls the job's task, or, when that cannot be known, how the attempt failed.

    ``load_result`` answers the task that asks for its own result; None looks it up in the store.
    """
    try:
        terms = terms_of(job.task, job.queue)
    except TaskNotRegisteredError as error:
        return _settlement(job, None, _failed(error, FailureKind.UNKNOWN_TASK))
    try:
        args, kwargs = decode(job.args, list), decode(job.kwargs, dict)
        metadata = decode(job.metadata, dict)
    except ValueError as error:
        undecodable = PayloadError("The stored job", f"cannot be decoded: {error}.")
        return _settlement(job, terms, _failed(undecodable, FailureKind.UNDECODABLE))
    try:
        check_fit(terms.task, args, kwargs)
    except TypeError as error:
        return _settlement(job, terms, _failed(error, FailureKind.ERROR))
    context = None
    if terms.wants_context or terms.run_hooks:
        answer = load_result or (lambda: load(store, job.id, terms.task.backend))
        ledger = Ledger(store, job, worker, depth=store.transaction_depth())
        context = _context(job, metadata, answer, ledger)
    if terms.wants_context:
        args, kwargs = with_context(terms.task, args, kwargs, context)
    return Call(job, terms, args, kwargs, metadata, store, worker, context)


def run(call: Call, *, within: Within | None = None, on_error: OnError | None = None) -> Settlement:
    """
    Call the task in this thread. Nothing that it raises passes, not even SystemExit; ``on_error`` is told of it.

    Call it in a context (contextvars) of its own: the job's trace is set in it, and is not taken back. ``within``
    surrounds the body; what that raises is the body's, and so is what the project's run hooks raise.
    """
    begun = time.monotonic()
    _begin(call)
    if is_listened_to(task_started):
        _announce_start(call)
    try:
        is_bare = within is None and not call.terms.run_hooks
        value = _value(call) if is_bare else _surrounded_value(call, within or contextlib.nullcontext)
        outcome: Succeeded | Failed = _succeeded(value, begun, call)
    except BaseException as error:  # noqa: BLE001 - a job must not end its worker
        outcome = _raised(error, call.task, begun)
        if on_error is not None:
            on_error(error)
    return _settlement(call.job, call.terms, outcome)


async def run_async(call: Call) -> Settlement:
    """Await the task in this event loop, as ``run``. Nothing that it raises passes; cancellation from outside does."""
    _begin(call)
    # In a thread, as receivers may use the ORM, and so does the description of a job that failed before.
    if is_listened_to(task_started):
        await sync_to_async(_announce_start)(call)
    begun = time.monotonic()
    try:
        value = await (_surrounded(call) if call.terms.run_hooks else call.task.func(*call.args, **call.kwargs))
        outcome: Succeeded | Failed = _succeeded(value, begun, call)
    except asyncio.CancelledError as error:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        outcome = _raised(error, call.task, begun)
    except BaseException as error:  # noqa: BLE001 - a job must not end its worker
        outcome = _raised(error, call.task, begun)
    return _settlement(call.job, call.terms, outcome)


def interrupted(job: ClaimedJob, run_seconds: float) -> Settlement:
    """Return the settlement of a job that its worker had to leave."""
    message = "The worker was stopped before the job ended; the attempt is not counted."
    return _settlement(job, None, Failed(kind=FailureKind.INTERRUPTED, message=message, run_seconds=run_seconds))


def unrecordable(job: ClaimedJob) -> Settlement:
    """Return the settlement of a job that succeeded, but whose success the database would not store."""
    message = "The job succeeded, but its result could not be stored; see the worker's log."
    return _settlement(job, None, Failed(kind=FailureKind.ERROR, message=message))


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
    job: ClaimedJob, metadata: Mapping[str, Any], load_result: Callable[[], AnyTaskResult], ledger: Ledger
) -> JobContext:
    return JobContext(
        job_id=job.id,
        queue=job.queue,
        tenant=job.tenant,
        attempt=job.attempts,
        max_attempts=job.max_attempts,
        last_error=job.last_error or None,
        metadata=metadata,
        load_result=load_result,
        ledger=ledger,
    )


def _succeeded(value: Any, begun: float, call: Call) -> Succeeded:
    if value is None or not (call.terms.retention or call.job.workflow):
        return Succeeded("null", time.monotonic() - begun)
    result = encode(plain(value), "the result", get_settings().max_payload_bytes)
    return Succeeded(result=result, run_seconds=time.monotonic() - begun)


def _raised(error: BaseException, task: AnyTask, begun: float) -> Failed:
    reject_on = getattr(task, "reject_on", ())
    rejected = isinstance(error, (Reject, *reject_on)) or getattr(error, "retryable", True) is False
    kind = FailureKind.REJECTED if rejected else FailureKind.ERROR
    retry_after = error.delay if isinstance(error, RetryAfter) else None
    return _failed(error, kind, run_seconds=time.monotonic() - begun, retry_after=retry_after)


def _failed(
    error: BaseException, kind: FailureKind, *, run_seconds: float = 0.0, retry_after: timedelta | None = None
) -> Failed:
    return Failed(
        kind=kind,
        error_class=f"{type(error).__module__}.{type(error).__qualname__}"[:300],
        message=_storable(lambda: str(error), MOST_MESSAGE),
        traceback=_storable(lambda: "".join(traceback.format_exception(error)), MOST_TRACEBACK),
        run_seconds=run_seconds,
        retry_after=retry_after,
    )


def _storable(text_of: Callable[[], str], most: int) -> str:
    """Return text that every database stores: bounded, without NUL and half surrogates."""
    try:
        text = text_of()
    except Exception as error:  # noqa: BLE001 - an error's own __str__ may raise anything
        text = f"(its text could not be made: {type(error).__name__})"
    text = text.replace("\x00", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - most} characters left out ...\n{text[-half:]}"


def _settlement(job: ClaimedJob, terms: Terms | None, outcome: Succeeded | Failed) -> Settlement:
    """Return the settlement by the task's terms, or by the queue's where the task plays no part."""
    policies = terms or get_settings().queue(job.queue)
    return Settlement(job, outcome, policies.backoff, policies.retention)
