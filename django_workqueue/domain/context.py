"""What a running task may know of its own delivery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from .contract import AnyTaskResult
from .trace import correlation_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """
    The delivery of a job, handed to a task that asks for it.

    A task asks with ``takes_context=True`` and ``context`` as its first parameter, or by a parameter named ``ctx``. It
    answers everything that ``django.tasks``' own context does.
    """

    job_id: UUID
    queue: str
    tenant: str
    attempt: int
    """This attempt's number, from 1."""
    max_attempts: int
    last_error: str | None
    """One line on why the attempt before this one failed; None at first."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    load_result: Callable[[], AnyTaskResult] = field(repr=False)

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

    @property
    def task_result(self) -> AnyTaskResult:
        """The job as ``django.tasks`` describes it, read from the database at each call."""
        return self.load_result()
