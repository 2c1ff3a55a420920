"""
Once: the rules by which a step of a job has its effect at most once, and every replay is told its outcome.

A step is begun by a row that is committed before its function is called, and done by its outcome in that row. In
between nobody can know whether the effect happened: that is told apart and never guessed.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import Error

from ..conf import get_settings
from ..domain.encoding import decode, encode, plain
from ..domain.outcomes import ClaimedJob
from ..domain.states import StepState
from ..domain.steps import OnUnknown, check_step, digest, idempotency_key
from ..exceptions import (
    InvalidStepError,
    KeyMismatchError,
    StepInFlightError,
    StepUnknownError,
)
from ..models import Step
from ..store import Store
from ..store.steps import StepRequest
from .events import job_fields
from .settle import loss_of

logger = logging.getLogger("django_workqueue.run")

SHORTEST_WAIT = timedelta(seconds=1)
"""Before a job looks again at a step that is in flight."""


class Ledger:
    """The steps of one attempt. ``depth`` is how many transactions are open around its body on the queue's database."""

    def __init__(self, store: Store, job: ClaimedJob, worker: str, *, depth: int) -> None:
        self._store = store
        self._job = job
        self._worker = worker
        self._depth = depth

    def once(
        self,
        step: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        on_unknown: OnUnknown,
    ) -> Any:
        """See JobContext.once."""
        begun = self._begin(step, fn, args, kwargs, on_unknown)
        if begun.state == StepState.DONE:
            return decode(begun.outcome, object)
        try:
            value = _finished(fn(*args, **kwargs), step)
        except BaseException as error:
            self._failed(begun, error)
            raise
        return self._record(begun, value)

    async def aonce(
        self,
        step: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        on_unknown: OnUnknown,
    ) -> Any:
        """See JobContext.aonce."""
        begun = await sync_to_async(self._begin)(step, fn, args, kwargs, on_unknown)
        if begun.state == StepState.DONE:
            return decode(begun.outcome, object)
        try:
            called = fn if inspect.iscoroutinefunction(fn) else sync_to_async(fn)
            value = await called(*args, **kwargs)
            if inspect.isawaitable(value):
                value = await value
        except BaseException as error:
            await sync_to_async(self._failed)(begun, error)
            raise
        return await sync_to_async(self._record)(begun, value)

    # -- before the call -----------------------------------------------------------------------------------------

    def _begin(
        self,
        step: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        on_unknown: OnUnknown,
    ) -> Step:
        """Return the step, begun by this call or done before. Raises in every other case, with nothing done."""
        if on_unknown not in {"raise", "retry"}:
            raise InvalidStepError(f"on_unknown is {on_unknown!r}. Use 'raise' or 'retry'.")
        asked = self._request(step, fn, args, kwargs)
        self._check_transaction(step)
        self._check_lease()
        found, is_mine = self._store.begin_step(asked)
        if not is_mine and self._is_unknown(found, asked) and on_unknown == "retry":
            logger.warning("%s is unknown and is called again.", _named(found), extra=self._fields(found))
            found, is_mine = self._store.begin_step_again(found, asked)
        return found if is_mine else self._done(found, asked)

    def _request(
        self, step: str, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> StepRequest:
        check_step(step)
        settings, job = get_settings(), self._job
        return StepRequest(
            tenant=job.tenant,
            key=idempotency_key(job.tenant, job.id, step),
            digest=digest(fn, args, kwargs, step=step, max_bytes=settings.max_payload_bytes),
            job_id=job.id,
            name=step,
            worker=self._worker,
            lease_id=job.lease_id or None,
            retention=settings.step_retention,
        )

    def _check_transaction(self, step: str) -> None:
        if self._store.transaction_depth() > self._depth:
            raise InvalidStepError(
                f"Step {step!r} is called inside a transaction on the database {self._store.alias!r}: a rollback would "
                "take back its record, although its effect had happened. Call once() outside of atomic()."
            )

    def _check_lease(self) -> None:
        """Refuse to begin what a lost lease no longer covers: another attempt may be at it."""
        job = self._job
        if job.lease_id and self._store.held_for(job.id, job.lease_id) is None:
            raise loss_of(self._store, job)

    def _is_unknown(self, step: Step, asked: StepRequest) -> bool:
        """Whether the same step was begun, by an attempt that has ended or in doubt, and has no outcome."""
        if step.state == StepState.DONE or step.digest != asked.digest:
            return False
        return step.state == StepState.UNKNOWN or self._store.held_for(step.job_id, step.lease_id) is None

    def _done(self, step: Step, asked: StepRequest) -> Step:
        """Return a step that was done before, or raise why it cannot be told or begun."""
        job_id, name = step.job_id, step.name
        if step.digest != asked.digest:
            raise KeyMismatchError(job_id, name, stored_digest=step.digest, digest=asked.digest)
        if step.state == StepState.DONE:
            if not step.outcome:
                raise StepUnknownError(job_id, name, "unstorable")
            logger.info("%s was done before.", _named(step), extra=self._fields(step))
            return step
        held = None if step.state == StepState.UNKNOWN else self._store.held_for(job_id, step.lease_id)
        if held is None:
            raise StepUnknownError(job_id, name, "ended")
        raise StepInFlightError(job_id, name, delay=max(held, SHORTEST_WAIT))

    # -- after the call ------------------------------------------------------------------------------------------

    def _failed(self, begun: Step, error: BaseException) -> None:
        """
        Free the step: a function that raises says that its effect did not happen.

        Unless it says that it cannot tell (``indeterminate``), or did not get to say anything: what is no Exception
        breaks off a call from outside, at any point of it.
        """
        is_known = isinstance(error, Exception) and not getattr(error, "indeterminate", False)
        try:
            (self._store.free_step if is_known else self._store.doubt_step)(begun.pk)
        except Error:
            # Left as begun, it is unknown once this attempt is over. What the function raised says more than this.
            logger.warning("%s could not be freed.", _named(begun), exc_info=True, extra=self._fields(begun))
        if is_known:
            return
        logger.warning(
            "%s was broken off by %s: whether it had its effect is not known.",
            _named(begun),
            type(error).__name__,
            extra=self._fields(begun),
        )

    def _record(self, begun: Step, value: Any) -> Any:
        """
        Store the outcome and return it as every replay will be given it.

        An outcome that JSON cannot express is refused, but the effect has happened: the step is done all the same, and
        a replay is told so instead of doing it again.
        """
        try:
            outcome = encode(plain(value), f"the outcome of step {begun.name!r}", get_settings().max_payload_bytes)
        except Exception:
            self._write(begun, "")
            raise
        return decode(self._write(begun, outcome), object)

    def _write(self, begun: Step, outcome: str) -> str:
        """Store the outcome, and return the one that is stored: the first one wins."""
        if self._store.record_step(begun.pk, outcome, retention=get_settings().step_retention):
            return outcome
        stored = self._store.step(begun.tenant, begun.key)
        if stored is None or stored.state != StepState.DONE or not stored.outcome:
            raise loss_of(self._store, self._job)
        return stored.outcome

    def _fields(self, step: Step) -> dict[str, Any]:
        return job_fields(self._job) | {"step": step.name, "step_key": step.key}


def _finished(value: Any, step: str) -> Any:
    """Return ``value``, unless its making was only the beginning: of a coroutine nothing has happened yet."""
    if not inspect.isawaitable(value):
        return value
    if inspect.iscoroutine(value):
        value.close()
    raise InvalidStepError(f"Step {step!r} is a coroutine. Await context.aonce() with its function.")


def _named(step: Step) -> str:
    return f"Step {step.name!r} of job {step.job_id}"
