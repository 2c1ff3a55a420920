"""A job as ``django.tasks`` describes it: the contract's TaskResult, made from our rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, overload
from uuid import UUID

from ..domain.contract import (
    AnyTask,
    AnyTaskResult,
    TaskError,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from ..domain.encoding import decode
from ..domain.outcomes import ClaimedJob
from ..domain.registry import resolve
from ..domain.states import Ending, JobState, MemberState, WorkflowState
from ..exceptions import TaskNotRegisteredError
from ..models import DeadLetter, Failure, FinishedJob, Job
from ..store import Store
from ..store.enqueue import Stored
from ..store.settle import copied


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkResult(AnyTaskResult):  # type: ignore[misc] # the stubs do not say that it is frozen
    """A TaskResult that also says whether an enqueue was answered with a job that was there before."""

    duplicate: bool = False


def of_stored(job: Job, task: AnyTask, backend: str, *, duplicate: bool) -> WorkResult:
    """Return the result of an enqueue. ``task`` is the one that was enqueued."""
    status = TaskResultStatus.RUNNING if job.state == JobState.LEASED else TaskResultStatus.READY
    return _result(job, task, backend, status=status, duplicate=duplicate)


class Results(Sequence[WorkResult]):
    """The results of an enqueue, in order, each made when it is asked for: of many, most are never looked at."""

    def __init__(self, stored: Sequence[Stored], task: AnyTask, backend: str) -> None:
        self._stored = stored
        self._task = task
        self._backend = backend

    def __len__(self) -> int:
        """Return the number of jobs asked for, duplicates included."""
        return len(self._stored)

    @overload
    def __getitem__(self, place: int) -> WorkResult: ...

    @overload
    def __getitem__(self, place: slice) -> Results: ...

    def __getitem__(self, place: int | slice) -> WorkResult | Results:
        """Return one result, or some."""
        if isinstance(place, slice):
            return Results(self._stored[place], self._task, self._backend)
        job, duplicate = self._stored[place]
        return of_stored(job, self._task, self._backend, duplicate=duplicate)


def of_attempt(
    store: Store,
    job: ClaimedJob,
    task: AnyTask,
    *,
    status: TaskResultStatus,
    worker: str,
    started_at: datetime,
    finished_at: datetime | None = None,
    result: str | None = None,
    has_failure: bool = False,
) -> WorkResult:
    """
    Return what a worker knows of the attempt it runs, for signals.

    Reads failures from the database, and so nothing on a first attempt, unless it is among them: ``has_failure``.
    Times are the worker's.
    """
    failures: list[Failure] = []
    if job.last_error or has_failure:
        failures = list(Failure.objects.using(store.alias).filter(job_id=job.id).order_by("id"))
    row = Job(pk=job.id, args=job.args, kwargs=job.kwargs, enqueued_at=job.enqueued_at)
    last_attempt = None if has_failure else (started_at, worker)
    made = _result(
        row,
        task,
        task.backend,
        status=status,
        failures=failures,
        last_attempt=last_attempt,
        finished_at=finished_at,
    )
    if result is not None:
        object.__setattr__(made, "_return_value", decode(result, object))
    return made


def load(store: Store, job_id: str | UUID, backend: str) -> WorkResult:
    """
    Return the job called ``job_id``, wherever it is now.

    Raises TaskResultDoesNotExist for an id that is malformed, unknown or pruned, and for a job whose task is not there.
    """
    row = find(store, _uuid(job_id))
    try:
        task = resolve(row.task)
    except TaskNotRegisteredError as error:
        raise TaskResultDoesNotExist(str(error)) from error
    failures = list(Failure.objects.using(store.alias).filter(job_id=row.pk).order_by("id"))
    match row:
        case FinishedJob():
            return of_finished(row, task, backend, failures)
        case DeadLetter():
            return _of_dead(row, task, backend, failures)
        case _:
            return _of_live(row, task, backend, failures)


def _uuid(job_id: str | UUID) -> UUID:
    try:
        return job_id if isinstance(job_id, UUID) else UUID(job_id)
    except (ValueError, AttributeError, TypeError):
        raise TaskResultDoesNotExist(f"{job_id!r} is not the id of a job.") from None


def find(store: Store, job_id: UUID) -> Job | FinishedJob | DeadLetter:
    """Return the row of a job, wherever it is now. Raises TaskResultDoesNotExist."""
    # A job may move while the tables are read one after the other; it moves on in the order in which they are read,
    # save when it is requeued, which the second round sees.
    for _ in range(2):
        for rows in (Job.objects.select_related("lease"), FinishedJob.objects.all(), DeadLetter.objects.all()):
            found: Job | FinishedJob | DeadLetter | None = rows.using(store.alias).filter(pk=job_id).first()
            if found is not None:
                return found
    if planned := _planned(store, job_id):
        return planned
    raise TaskResultDoesNotExist(f"There is no job {str(job_id)!r}: it never was, or its time of retention is over.")


def _planned(store: Store, job_id: UUID) -> Job | FinishedJob | None:
    """Return the member of a workflow that has no job yet: one that waits, or one that is not going to run as it is."""
    if (found := store.planned(job_id)) is None:
        return None
    job, workflow, state = found
    if state == MemberState.WAITING and workflow.state == WorkflowState.RUNNING:
        return job
    ended = workflow.ended_at or workflow.enqueued_at
    return FinishedJob(outcome=Ending.CANCELLED, finished_at=ended, expires_at=ended, **copied(job))


def _of_live(job: Job, task: AnyTask, backend: str, failures: list[Failure]) -> WorkResult:
    lease = job.lease
    return _result(
        job,
        task,
        backend,
        status=TaskResultStatus.READY if lease is None else TaskResultStatus.RUNNING,
        failures=failures,
        last_attempt=None if lease is None else (lease.acquired_at, lease.worker),
    )


def of_finished(job: FinishedJob, task: AnyTask, backend: str, failures: list[Failure]) -> WorkResult:
    """Return a job that is over."""
    succeeded = job.outcome == Ending.SUCCEEDED
    result = _result(
        job,
        task,
        backend,
        status=TaskResultStatus.SUCCESSFUL if succeeded else TaskResultStatus.FAILED,
        failures=failures,
        last_attempt=None if job.started_at is None else (job.started_at, job.worker),
        finished_at=job.finished_at,
    )
    if succeeded:
        object.__setattr__(result, "_return_value", decode(job.result, object))
    return result


def _of_dead(job: DeadLetter, task: AnyTask, backend: str, failures: list[Failure]) -> WorkResult:
    return _result(job, task, backend, status=TaskResultStatus.FAILED, failures=failures, finished_at=job.died_at)


def _result(
    job: Job | FinishedJob | DeadLetter,
    task: AnyTask,
    backend: str,
    *,
    status: TaskResultStatus,
    failures: Iterable[Failure] = (),
    last_attempt: tuple[datetime, str] | None = None,
    finished_at: datetime | None = None,
    duplicate: bool = False,
) -> WorkResult:
    attempts = [(failure.started_at, failure.worker) for failure in failures]
    if last_attempt is not None:
        attempts.append(last_attempt)
    return WorkResult(
        task=task,
        id=str(job.pk),
        status=status,
        enqueued_at=job.enqueued_at,
        started_at=attempts[0][0] if attempts else None,
        last_attempted_at=attempts[-1][0] if attempts else None,
        finished_at=finished_at,
        args=_readable(job.args, list),
        kwargs=_readable(job.kwargs, dict),
        backend=backend,
        errors=[_error(failure) for failure in failures],
        worker_ids=[worker for _, worker in attempts],
        duplicate=duplicate,
    )


def _readable(text: str, kind: type) -> Any:
    """Decode stored arguments; those that cannot be are empty here and whole in the admin."""
    try:
        return decode(text, kind)
    except ValueError:
        return kind()


def _error(failure: Failure) -> TaskError:
    """Describe an attempt that failed; one that no exception ended carries our own error's path."""
    path = failure.error_class or "django_workqueue.exceptions.LeaseLostError"
    return TaskError(exception_class_path=path, traceback=failure.traceback or failure.message)
