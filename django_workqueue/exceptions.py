"""
The errors of the queue, in one place to avoid import loops.

::

    WorkQueueError
    ├── PayloadError (ValueError)        arguments, result or metadata that JSON would not give back unchanged
    │   └── PayloadTooLargeError
    ├── ArgumentsDoNotFitError (TypeError)   the task cannot be called with these arguments
    ├── InvalidJobError (ValueError)     a bad tenant, key, id, delay ... at enqueue
    ├── InvalidScheduleError (ValueError)    a cron line, interval, zone ... that cannot be followed
    ├── QueueFullError                   too many of the tenant's jobs wait already
    ├── QueueUnavailableError            the database cannot be reached
    ├── TenantScopeError                 whose jobs a user may see cannot be told
    ├── LeaseLostError                   the worker's claim no longer holds
    ├── JobNotFoundError (LookupError)   no such job, or not yours to see
    ├── WorkflowNotFoundError (LookupError)
    ├── ScheduleNotFoundError (LookupError)  no such schedule
    ├── WorkerNotFoundError (LookupError)    no such worker
    ├── WorkerRequestError               a worker cannot be asked for this as it is
    ├── DuplicateJobError                a dead letter cannot come back, nor a job move: key or id is live there
    ├── TaskNotRegisteredError (LookupError)
    ├── InvalidStepError (ValueError)    a step that cannot be begun as it was asked for
    ├── StepNotFoundError (LookupError)  no such step is open
    ├── KeyMismatchError                 a step was done before with other arguments
    ├── StepInFlightError (RetryAfter)   a step is being done at this moment
    └── StepUnknownError                 whether a step was done, only a person can tell

    Reject, RetryAfter                   raised by a task to steer its own job; signals, not faults

    JobStoppedError (BaseException)      raised inside a running task to end it; passes ``except Exception``
    ├── JobTimeoutError                  the attempt ran longer than its timeout
    └── JobCancelledError                the job is to be cancelled
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

LONGEST = timedelta(days=36_525)
"""The longest duration that is taken anywhere, a century: past the year 9999 neither databases nor Python can count."""


class WorkQueueError(Exception):
    """Base class of every error of this package."""

    retryable = True
    """Whether trying the same again may succeed; a task that lets it escape is retried only then."""


class PayloadError(WorkQueueError, ValueError):
    """A value would not come back from JSON as it went in. ``path`` names it, e.g. ``args[0]['when']``."""

    retryable = False

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"{path} {problem}")


class PayloadTooLargeError(PayloadError):
    """The encoded arguments are larger than ``WORKQUEUE['MAX_PAYLOAD_BYTES']``."""


class ArgumentsDoNotFitError(WorkQueueError, TypeError):
    """The task cannot be called with these arguments. Raised at enqueue; in a worker the job fails with it."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"The arguments do not fit {path}: {problem}. Did its signature change between two deploys?")


class InvalidJobError(WorkQueueError, ValueError):
    """An option of the job cannot be used; nothing was written."""

    retryable = False


class InvalidScheduleError(WorkQueueError, ValueError):
    """A schedule cannot be followed: its cron line, interval, zone or policies cannot be used, or it never fires."""

    retryable = False


class QueueFullError(WorkQueueError):
    """As many jobs of the tenant wait in the queue as WORKQUEUE['TENANT_DEPTH'] permits. Nothing was accepted."""

    def __init__(self, queue: str, tenant: str, *, depth: int, limit: int) -> None:
        self.queue = queue
        self.tenant = tenant
        self.depth = depth
        self.limit = limit
        whose = f"of tenant {tenant!r} " if tenant else ""
        super().__init__(
            f"Queue {queue!r} has {depth} waiting jobs {whose}and may have {limit} (WORKQUEUE['TENANT_DEPTH']). "
            "Nothing was stored; enqueue again when some have run, or raise the limit."
        )


class QueueUnavailableError(WorkQueueError):
    """The database that holds the queue cannot be reached. Nothing was accepted; trying again may succeed."""

    def __init__(self, operation: str, database: str) -> None:
        self.operation = operation
        self.database = database
        super().__init__(
            f"Could not {operation}: the database {database!r} cannot be reached. "
            "Nothing was stored; try again, or look at its connection settings."
        )


class TenantScopeError(WorkQueueError):
    """The function that ``WORKQUEUE['TENANT_SCOPE']`` names does not say whose jobs a user may see. None are shown."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(
            f"WORKQUEUE['TENANT_SCOPE'], {path}, does not say which tenants this user may see: {problem}. "
            "Nothing is shown until it returns a collection of their names, or None for all."
        )


LossReason = Literal["expired", "taken", "capped"]


class LeaseLostError(WorkQueueError):
    """A worker's claim no longer holds, so nothing that it reports about the job is recorded."""

    retryable = False
    _explanations: dict[str, str] = {
        "expired": "it was not renewed in time",
        "taken": "another worker holds the job",
        "capped": "it reached its longest permitted total, WORKQUEUE['MAX_LEASE']",
    }

    def __init__(self, lease_id: int, reason: LossReason, *, job_id: Any = None, holder: str = "") -> None:
        self.lease_id = lease_id
        self.reason = reason
        self.job_id = job_id
        self.holder = holder
        what = f"Lease {lease_id}" + (f" on job {job_id}" if job_id else "")
        by = f" ({holder})" if holder else ""
        super().__init__(
            f"{what} is lost: {self._explanations[reason]}{by}. The job's other attempt is the one that counts."
        )


class JobNotFoundError(WorkQueueError, LookupError):
    """There is no such job here, or it belongs to another tenant."""

    retryable = False

    def __init__(self, job_id: Any) -> None:
        self.job_id = job_id
        super().__init__(f"There is no job {str(job_id)!r} here.")


class WorkflowNotFoundError(WorkQueueError, LookupError):
    """There is no such workflow here: it never was, or its time of retention is over."""

    retryable = False

    def __init__(self, workflow_id: Any) -> None:
        self.workflow_id = workflow_id
        super().__init__(f"There is no workflow {str(workflow_id)!r} here. Was it pruned?")


class ScheduleNotFoundError(WorkQueueError, LookupError):
    """There is no schedule of that name."""

    retryable = False

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no schedule {name!r} here. One in code is there once a worker has started.")


class WorkerNotFoundError(WorkQueueError, LookupError):
    """There is no worker of that name or id. It may have stopped meanwhile."""

    retryable = False

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no worker {name!r}. It may have stopped meanwhile.")


class WorkerRequestError(WorkQueueError):
    """What a worker was asked for does not go with how it stands. Nothing was changed."""

    retryable = False

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        super().__init__(f"Worker {name!r} {problem}")


class DuplicateJobError(WorkQueueError):
    """A dead letter cannot come back, nor a job move, where another live job has its id or its dedupe key."""

    retryable = False

    def __init__(self, job_id: Any, holder_id: Any) -> None:
        self.job_id = job_id
        self.holder_id = holder_id
        super().__init__(
            f"Job {job_id} cannot be put there: job {holder_id} is live with the same id or dedupe key. "
            "Let that one end first, or discard this one."
        )


class TaskNotRegisteredError(WorkQueueError, LookupError):
    """A stored job names a task that this process cannot find."""

    def __init__(self, path: str, problem: str = "") -> None:
        self.path = path
        because = f" ({problem})" if problem else ""
        super().__init__(
            f"No task {path!r} can be found{because}. Was it renamed or removed? Deploy its module to the workers, "
            "or add its new path to WORKQUEUE['ALIASES']."
        )


class JobStoppedError(BaseException):
    """
    Raised inside a running task to end it. Let it pass, once you have cleaned up.

    It is no Exception, as asyncio.CancelledError is none: code that catches all errors and goes on is not meant.
    """


class JobTimeoutError(JobStoppedError):
    """The attempt ran longer than its timeout."""

    def __init__(self, message: str = "The attempt ran longer than its timeout.") -> None:
        super().__init__(message)


class JobCancelledError(JobStoppedError):
    """The job is to be cancelled. A task that ends by this error is; it may also raise it by itself."""

    def __init__(self, message: str = "The job is to be cancelled.") -> None:
        super().__init__(message)


class Reject(Exception):  # noqa: N818 - a signal that a task raises, not a fault of the package
    """Raise inside a task: this job can never succeed, move it to the dead letters at once."""


class RetryAfter(Exception):  # noqa: N818 - a signal that a task raises, not a fault of the package
    """Raise inside a task: try again after ``delay`` (seconds or timedelta). Counts as an attempt."""

    def __init__(self, delay: float | timedelta, message: str = "") -> None:
        self.delay = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
        if not timedelta() <= self.delay <= LONGEST:
            raise ValueError(f"RetryAfter needs a delay from zero to a century, in seconds, not {delay!r}.")
        super().__init__(message or f"Try again in {self.delay.total_seconds():g} s.")


class InvalidStepError(WorkQueueError, ValueError):
    """A step cannot be begun, or settled, as it was asked for; nothing was done."""

    retryable = False


class StepNotFoundError(WorkQueueError, LookupError):
    """The job has no such step, or it is another tenant's."""

    retryable = False

    def __init__(self, job_id: Any, step: str) -> None:
        self.job_id = job_id
        self.step = step
        super().__init__(f"Job {job_id} has no step {step!r} here.")


class KeyMismatchError(WorkQueueError):
    """The step was begun before by another function or with other arguments. Nothing was done."""

    retryable = False

    def __init__(self, job_id: Any, step: str, *, stored_digest: str, digest: str) -> None:
        self.job_id = job_id
        self.step = step
        self.stored_digest = stored_digest
        self.digest = digest
        super().__init__(
            f"Step {step!r} of job {job_id} was begun before by another function or with other arguments "
            f"({stored_digest[:12]}, now {digest[:12]}). Give another effect another step name, "
            "and pass only what is the same in every attempt."
        )


class StepInFlightError(RetryAfter, WorkQueueError):
    """The step is being done at this moment by a call whose lease holds. Nothing was done; the job comes back."""

    def __init__(self, job_id: Any, step: str, *, delay: timedelta) -> None:
        self.job_id = job_id
        self.step = step
        super().__init__(delay, f"Step {step!r} of job {job_id} is in flight; its lease holds for {delay}.")


UnknownReason = Literal["ended", "unstorable"]


class StepUnknownError(WorkQueueError):
    """Whether the step had its effect, or what came of it, is not on record. Nothing was done; a person decides."""

    retryable = False
    _explanations: dict[str, str] = {
        "ended": "was begun by an attempt that ended without an outcome: its effect may have happened",
        "unstorable": "is done, but its outcome could not be stored",
    }

    def __init__(self, job_id: Any, step: str, reason: UnknownReason) -> None:
        self.job_id = job_id
        self.step = step
        self.reason = reason
        super().__init__(
            f"Step {step!r} of job {job_id} {self._explanations[reason]}. Find out, "
            "tell operate.resolve_step(), and requeue the job."
        )
