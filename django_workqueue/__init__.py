"""A durable work queue that lives in the Django project's own database."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .exceptions import (
    ArgumentsDoNotFitError,
    DuplicateJobError,
    InvalidJobError,
    InvalidScheduleError,
    InvalidStepError,
    JobCancelledError,
    JobNotFoundError,
    JobStoppedError,
    JobTimeoutError,
    KeyMismatchError,
    LeaseLostError,
    PayloadError,
    PayloadTooLargeError,
    QueueUnavailableError,
    Reject,
    RetryAfter,
    ScheduleNotFoundError,
    StepInFlightError,
    StepNotFoundError,
    StepUnknownError,
    TaskNotRegisteredError,
    TenantScopeError,
    WorkflowNotFoundError,
    WorkQueueError,
)

if TYPE_CHECKING:
    from .domain.context import JobContext
    from .domain.policies import BackoffPolicy
    from .domain.timetables import Timetable
    from .domain.trace import correlation_id, traceparent
    from .lifecycle.results import WorkResult
    from .tasks import Call, Signature, WorkTask, task
    from .workflows import WorkflowHandle, chain, chord, get_workflow, group

__version__ = "0.1.0.dev0"

__all__ = [
    "ArgumentsDoNotFitError",
    "BackoffPolicy",
    "Call",
    "DuplicateJobError",
    "InvalidJobError",
    "InvalidScheduleError",
    "InvalidStepError",
    "JobCancelledError",
    "JobContext",
    "JobNotFoundError",
    "JobStoppedError",
    "JobTimeoutError",
    "KeyMismatchError",
    "LeaseLostError",
    "PayloadError",
    "PayloadTooLargeError",
    "QueueUnavailableError",
    "Reject",
    "RetryAfter",
    "ScheduleNotFoundError",
    "Signature",
    "StepInFlightError",
    "StepNotFoundError",
    "StepUnknownError",
    "TaskNotRegisteredError",
    "TenantScopeError",
    "Timetable",
    "WorkQueueError",
    "WorkResult",
    "WorkTask",
    "WorkflowHandle",
    "WorkflowNotFoundError",
    "chain",
    "chord",
    "correlation_id",
    "get_workflow",
    "group",
    "task",
    "traceparent",
]

# These need the app registry or the settings, which are not there yet when Django imports this package as an app.
_LAZY = {
    "BackoffPolicy": "domain.policies",
    "Call": "tasks",
    "JobContext": "domain.context",
    "Signature": "tasks",
    "Timetable": "domain.timetables",
    "WorkResult": "lifecycle.results",
    "WorkTask": "tasks",
    "WorkflowHandle": "workflows",
    "chain": "workflows",
    "chord": "workflows",
    "correlation_id": "domain.trace",
    "get_workflow": "workflows",
    "group": "workflows",
    "task": "tasks",
    "traceparent": "domain.trace",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
