"""The ``django.tasks`` backend: what ``TASKS`` names, and how its tasks reach the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.core import checks

from .domain.contract import AnyTask, BaseTaskBackend, InvalidTask, task_enqueued
from .domain.registry import call_plan
from .lifecycle import enqueue as enqueueing
from .lifecycle import results
from .lifecycle.events import announce, is_listened_to
from .lifecycle.requests import Requests
from .lifecycle.results import Results, WorkResult
from .store import store_for
from .tasks import Call, WorkTask


class WorkTaskBackend(BaseTaskBackend):
    """
    Accepts tasks with every option of ours. What becomes of their jobs is for its subclasses to say.

    ``QUEUES`` lists the permitted queue names; an empty list permits any. There are no ``OPTIONS``: what is configured
    at all is in the settings dict ``WORKQUEUE``.
    """

    task_class = WorkTask
    supports_defer = True
    supports_async_task = True
    supports_priority = True

    def validate_task(self, task: AnyTask) -> None:
        """Raise InvalidTask when the task could not be run, or names a queue that is not in QUEUES."""
        if isinstance(task.run_after, timedelta):
            _check_delay(task.run_after)
            super().validate_task(_Undeferred(task))
        else:
            super().validate_task(task)
        call_plan(task.func)

    def enqueue(  # type: ignore[override] # ours is more than a TaskResult, of any type
        self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> WorkResult:
        """Enqueue one job and return it. See lifecycle.enqueue for what is refused."""
        return self.enqueue_many(task, [Call(args=tuple(args), kwargs=kwargs)])[0]

    def enqueue_many(self, task: AnyTask, calls: Iterable[Call]) -> Sequence[WorkResult]:
        """Enqueue a job for each call, all of them checked first."""
        raise NotImplementedError(f"{type(self).__name__} must say what becomes of a job.")


class WorkQueueBackend(WorkTaskBackend):
    """Stores tasks as jobs in the project's database."""

    supports_get_result = True

    def enqueue_many(self, task: AnyTask, calls: Iterable[Call]) -> Sequence[WorkResult]:
        """Store a job for each call, as one step of the caller's transaction."""
        self.validate_task(task)
        stored = enqueueing.enqueue(requests_for(task, calls), permitted_queues=self.queues)
        made = Results(stored, task, self.alias)
        if is_listened_to(task_enqueued):
            for result in made:
                if not result.duplicate:
                    announce(task_enqueued, task, _constant(result))
        return made

    def get_result(self, result_id: str) -> WorkResult:
        """Return the job of that id. Raises TaskResultDoesNotExist."""
        return results.load(store_for(), result_id, self.alias)

    def check(self, **_kwargs: Any) -> list[checks.CheckMessage]:
        """Report what keeps this backend from working."""
        if not apps.is_installed("django_workqueue"):
            return [
                checks.Error(
                    f"TASKS[{self.alias!r}] uses WorkQueueBackend, but its app is not installed.",
                    hint="Add 'django_workqueue' to INSTALLED_APPS and migrate.",
                    id="django_workqueue.E001",
                )
            ]
        return []


class _Undeferred:
    """A task as seen by Django's validation, which knows no timedelta."""

    run_after = None

    def __init__(self, task: AnyTask) -> None:
        self._task = task

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)


def _check_delay(delay: timedelta) -> None:
    if delay < timedelta():
        raise InvalidTask(f"run_after is {delay!r}. Pass a delay of zero or more.")


def _constant(result: WorkResult) -> Callable[[], WorkResult]:
    return lambda: result


def requests_for(task: AnyTask, calls: Iterable[Call]) -> list[enqueueing.JobRequest]:
    """Return the request for each call's job."""
    request = Requests(task).request
    return [request(call.args, call.kwargs, job_id=call.job_id, dedupe_key=call.dedupe_key) for call in calls]
