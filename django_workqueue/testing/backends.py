"""Backends for ``TASKS`` in tests: one that runs jobs at once, one that only remembers them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from ..backend import WorkTaskBackend, requests_for
from ..domain import contract
from ..domain.contract import AnyTask, TaskError, TaskResultStatus, task_enqueued, task_finished
from ..domain.encoding import decode
from ..domain.outcomes import ClaimedJob, Failed
from ..lifecycle import results
from ..lifecycle.enqueue import build
from ..lifecycle.events import announce
from ..lifecycle.results import WorkResult
from ..models import Job
from ..store import store_for
from ..tasks import Call
from .attempts import attempt


class ImmediateBackend(WorkTaskBackend, contract.ImmediateBackend):  # type: ignore[misc] # as WorkTaskBackend.enqueue
    """
    Runs each job inside ``enqueue``, in the caller's thread and transaction, and answers with its result.

    Arguments and results pass through the same encoding as in the queue, the task is looked up by its stored path,
    and a task that asks for its context gets one. Nothing waits: deferred jobs run at once, and a failed one is not
    tried again. A database error in the body does not break the caller's transaction; callbacks given to
    ``transaction.on_commit`` wait for its commit.
    """

    def enqueue_many(self, task: AnyTask, calls: Iterable[Call]) -> list[WorkResult]:
        """Run a job for each call, one after the other, once all of them are checked."""
        return [self._perform(task, job) for job in _jobs(self, task, calls)]

    def _perform(self, task: AnyTask, job: Job) -> WorkResult:
        result = results.of_stored(job, task, self.alias, duplicate=False)
        announce(task_enqueued, task, lambda: result)
        now = timezone.now()
        _note(result, status=TaskResultStatus.RUNNING, started_at=now, last_attempted_at=now)
        result.worker_ids.append(self.worker_id)
        attempted = attempt(_claimed(job), store_for(), self.worker_id, commits=False, load_result=lambda: result)
        self._finish(result, attempted.settlement.outcome)
        announce(task_finished, task, lambda: result)
        if attempted.interrupt is not None:
            raise attempted.interrupt
        return result

    def _finish(self, result: WorkResult, outcome: Any) -> None:
        if isinstance(outcome, Failed):
            text = outcome.traceback or outcome.message
            result.errors.append(TaskError(exception_class_path=outcome.error_class, traceback=text))
            _note(result, status=TaskResultStatus.FAILED, finished_at=timezone.now())
        else:
            value = decode(outcome.result, object)
            _note(result, status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now(), _return_value=value)


class DummyBackend(WorkTaskBackend, contract.DummyBackend):  # type: ignore[misc] # as WorkTaskBackend.enqueue
    """
    Remembers what was enqueued, in ``results``, and runs nothing. ``clear()`` forgets it.

    What would be refused by the queue is refused; an id or a dedupe key that is there already is answered with the
    job that has it. ``assert_enqueued`` and ``enqueued`` look here too.
    """

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._jobs: dict[str, Job] = {}

    @property
    def jobs(self) -> list[Job]:
        """The remembered jobs as unsaved rows, oldest first."""
        return [self._jobs[result.id] for result in self.results]

    def enqueue_many(self, task: AnyTask, calls: Iterable[Call]) -> list[WorkResult]:
        """Remember a job for each call, once all of them are checked."""
        return [self._remember(task, job) for job in _jobs(self, task, calls)]

    def _remember(self, task: AnyTask, job: Job) -> WorkResult:
        holder = next((other for other in self.jobs if _clash(job, other)), None)
        if holder is not None:
            return results.of_stored(holder, task, self.alias, duplicate=True)
        result = results.of_stored(job, task, self.alias, duplicate=False)
        self._jobs[result.id] = job
        self.results.append(result)
        announce(task_enqueued, task, lambda: result)
        # One of the caller's own, so that what is done to it does not change what is remembered.
        return results.of_stored(job, task, self.alias, duplicate=False)


def _jobs(backend: WorkTaskBackend, task: AnyTask, calls: Iterable[Call]) -> Sequence[Job]:
    """Return unsaved rows for the calls, refused like those of the queue."""
    backend.validate_task(task)
    jobs = build(requests_for(task, calls), timezone.now, permitted_queues=backend.queues)
    for job in jobs:
        _stamp(job, timezone.now())
    return jobs


def _stamp(job: Job, now: datetime) -> None:
    """Set the times that the database would set."""
    for column in ("enqueued_at", "ready_at"):
        if not isinstance(getattr(job, column), datetime):
            setattr(job, column, now)


def _claimed(job: Job) -> ClaimedJob:
    values = {name: getattr(job, name) for name in ClaimedJob._fields}
    return ClaimedJob(**values | {"attempts": 1, "lease_id": 0})


def _clash(job: Job, other: Job) -> bool:
    has_its_key = job.dedupe_key is not None and job.dedupe_key == other.dedupe_key
    return job.pk == other.pk or (has_its_key and (job.queue, job.tenant) == (other.queue, other.tenant))


def _note(result: WorkResult, **values: Any) -> None:
    """Change a result that its holders see running; Django's own immediate backend does so too."""
    note: Callable[[Any, str, Any], None] = object.__setattr__
    for name, value in values.items():
        note(result, name, value)
