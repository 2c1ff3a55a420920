"""What a running task may know of its own delivery."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from ..exceptions import JobCancelledError
from .contract import AnyTaskResult
from .link import JobLink, NoLink
from .progress import Progress
from .steps import OnUnknown, check_step, idempotency_key
from .trace import correlation_of

SCHEDULE, SCHEDULED_FOR = "_schedule", "_scheduled_for"
"""Keys of the metadata that a schedule gives its jobs: its name, and the firing that they stand for."""
COPY_OF = "_copy_of"
"""Key of the metadata that a copy of another job has: the id of that one."""
REPLAY = "_replay"
"""Key of the metadata that a requeued job has: the id of the request that put it back, with others or alone."""


@runtime_checkable
class Ledger(Protocol):
    """What remembers the steps of a job. See JobContext.once."""

    def once(
        self,
        step: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        on_unknown: OnUnknown,
    ) -> Any:
        """Call ``fn`` unless the step is on record, and return its outcome."""

    async def aonce(
        self,
        step: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        on_unknown: OnUnknown,
    ) -> Any:
        """Do so for coroutines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """
    The delivery of a job, handed to a task that asks for it.

    A task asks with ``takes_context=True`` and ``context`` as its first parameter, or by a parameter named ``ctx``. It
    answers everything that ``django.tasks``' own context does.
    """

    job_id: UUID
    task: str = ""
    """The dotted path under which the job is stored."""
    queue: str
    tenant: str
    attempt: int
    """This attempt's number, from 1."""
    max_attempts: int
    last_error: str | None
    """One line on why the attempt before this one failed; None at first."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    load_result: Callable[[], AnyTaskResult] = field(repr=False)
    ledger: Ledger = field(repr=False)
    link: JobLink = field(default_factory=NoLink, repr=False)

    @property
    def is_retry(self) -> bool:
        """Whether an attempt came before this one."""
        return self.attempt > 1

    @property
    def is_last_attempt(self) -> bool:
        """Whether raising now makes the job a dead letter."""
        return self.attempt >= self.max_attempts

    @property
    def correlation_id(self) -> str:
        """The correlation id of whoever enqueued the job; the job's own id where there was none."""
        return correlation_of(self.job_id, self.metadata)

    @property
    def traceparent(self) -> str | None:
        """The W3C trace context of whoever enqueued the job."""
        return self.metadata.get("traceparent")

    def idempotency_key(self, step: str = "") -> str:
        """
        Return a key for ``step``, or for the whole job: the same in every attempt, and after a requeue.

        64 hexadecimal digits, to be given to a vendor that recognises a repeated request by such a key.
        """
        check_step(step, may_be_empty=True)
        return idempotency_key(self.tenant, self.job_id, step)

    def once(
        self, step: str, fn: Callable[..., Any], /, *args: Any, on_unknown: OnUnknown = "raise", **kwargs: Any
    ) -> Any:
        """
        Call ``fn(*args, **kwargs)`` unless this step of the job is on record, and return its outcome.

        The outcome is strict JSON and is given back, by the first call as by every other, as JSON gives it back. A
        step whose attempt died inside it is unknown: ``on_unknown="raise"`` raises StepUnknownError, ``"retry"`` calls
        again. A function that raises frees the step, unless the exception has a true ``indeterminate``.

        Raises KeyMismatchError when the step was begun with another function or other arguments, StepInFlightError
        while it is being done, and InvalidStepError inside an open transaction on the queue's database.
        """
        return self.ledger.once(step, fn, args, kwargs, on_unknown=on_unknown)

    async def aonce(
        self, step: str, fn: Callable[..., Any], /, *args: Any, on_unknown: OnUnknown = "raise", **kwargs: Any
    ) -> Any:
        """Do as ``once``, with a coroutine function, or with a plain one, which is run in a thread."""
        return await self.ledger.aonce(step, fn, args, kwargs, on_unknown=on_unknown)

    @property
    def scheduled_for(self) -> datetime | None:
        """The firing of the schedule that the job stands for, in UTC; None for a job that no schedule enqueued."""
        moment = self.metadata.get(SCHEDULED_FOR)
        return None if moment is None else datetime.fromisoformat(moment)

    @property
    def cancelled(self) -> bool:
        """Whether the job is to be cancelled, as far as the worker has heard: within about a second."""
        return self.link.cancelled

    def heartbeat(self) -> None:
        """
        Renew the job's lease now, and end here if the job is no longer this attempt's to run.

        Raises LeaseLostError, which says why, when the lease is lost, JobCancelledError when the job is to be
        cancelled, and QueueUnavailableError when the database does not answer. Workers renew leases by themselves: this
        is to learn in time that what is to come would be in vain.
        """
        if self.link.heartbeat():
            raise JobCancelledError

    async def aheartbeat(self) -> None:
        """See heartbeat."""
        if await self.link.aheartbeat():
            raise JobCancelledError

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """
        Show how far the job is, in the admin and to programs: at once, also while a transaction is open.

        Cheap, and does not wait: of several within half a second the last one is stored. ``text`` is cut at 200
        characters. Raises InvalidJobError for what is no amount.
        """
        self.link.report(Progress(done, total, text).encode())

    @property
    def task_result(self) -> AnyTaskResult:
        """The job as ``django.tasks`` describes it, read from the database at each call."""
        return self.load_result()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        """Let injectors that check arguments with pydantic pass a context on as it is: its fields are not data."""
        from pydantic_core import core_schema  # noqa: PLC0415 - pydantic asks, so it is there

        return core_schema.is_instance_schema(cls)
