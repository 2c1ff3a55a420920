"""What a task asks for with each of its jobs: its own options, on the way to ``enqueue``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from ..domain.contract import AnyTask
from ..domain.registry import check_fit
from ..exceptions import InvalidJobError
from .enqueue import FIRST_COMMON, JobRequest

# Tasks of ``django.tasks`` itself have none of the other options.
_OF_ANY_TASK = {"priority", "run_after"}
_OPTIONS = ("tenant", "max_attempts", "dedupe_until", "dedupe_ttl", "concurrency_limit", "metadata", *_OF_ANY_TASK)


class Requests:
    """Makes the requests for jobs of one task. What they have in common is looked up once."""

    def __init__(self, task: AnyTask) -> None:
        self._task = task
        # A WorkTask's class is a door of the package, which nothing down here imports.
        ours = hasattr(task, "tenant")
        options = {name: getattr(task, name) for name in (_OPTIONS if ours else _OF_ANY_TASK)}
        form = JobRequest(task.module_path, queue=task.queue_name, **options)
        self._path = form.task
        self._common: tuple[Any, ...] = form[FIRST_COMMON:]
        self._job_id = getattr(task, "job_id", None)
        self._dedupe_key = getattr(task, "dedupe_key", None)
        self._concurrency_key = getattr(task, "concurrency_key", None)
        self._fitting: set[tuple[Any, ...]] = set()

    def request(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        job_id: UUID | None = None,
        dedupe_key: str | None = None,
    ) -> JobRequest:
        """
        Return the request for one job; ``job_id`` and ``dedupe_key`` replace the task's own.

        Raises ArgumentsDoNotFitError.
        """
        shape = (len(args), *kwargs)
        if shape not in self._fitting:
            check_fit(self._task, args, kwargs)
            self._fitting.add(shape)
        if dedupe_key is None and self._dedupe_key is not None:
            dedupe_key = self._key("dedupe_key", self._dedupe_key, args, kwargs)
        concurrency_key = self._concurrency_key
        if concurrency_key is not None:
            concurrency_key = self._key("concurrency_key", concurrency_key, args, kwargs)
        return JobRequest(self._path, args, kwargs, dedupe_key, concurrency_key, job_id or self._job_id, *self._common)

    def _key(self, name: str, given: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """Return the key of one job: the task's own, or what its callable answers for the arguments."""
        key: str | None = given(*args, **kwargs) if callable(given) else given
        if key is not None and not isinstance(key, str):
            raise InvalidJobError(f"The {name} of {self._path} answered {key!r}. Return a string or None.")
        return key


def request_for(
    task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any], *, dedupe_key: str | None = None
) -> JobRequest:
    """Return the request for one job of ``task``. Raises ArgumentsDoNotFitError."""
    return Requests(task).request(args, kwargs, dedupe_key=dedupe_key)
