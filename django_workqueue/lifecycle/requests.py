"""What a task asks for with each of its jobs: its own options, on the way to ``enqueue``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from ..domain.contract import AnyTask
from ..domain.registry import check_fit
from ..exceptions import InvalidJobError
from .enqueue import JobRequest


def request_for(
    task: AnyTask,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    job_id: UUID | None = None,
    dedupe_key: str | None = None,
) -> JobRequest:
    """
    Return the request for one job of ``task``; ``job_id`` and ``dedupe_key`` replace the task's own.

    Raises ArgumentsDoNotFitError. Tasks of ``django.tasks`` itself have none of our options.
    """
    check_fit(task, args, kwargs)
    common = (task.module_path, args, kwargs, task.queue_name)
    if not _is_ours(task):
        return JobRequest(*common, priority=task.priority, run_after=task.run_after, dedupe_key=dedupe_key)
    own: Any = task
    return JobRequest(
        *common,
        tenant=own.tenant,
        priority=own.priority,
        run_after=own.run_after,
        max_attempts=own.max_attempts,
        dedupe_key=_key("dedupe_key", own, args, kwargs) if dedupe_key is None else dedupe_key,
        dedupe_until=own.dedupe_until,
        dedupe_ttl=own.dedupe_ttl,
        concurrency_key=_key("concurrency_key", own, args, kwargs),
        concurrency_limit=own.concurrency_limit,
        metadata=own.metadata,
        job_id=job_id or own.job_id,
    )


def _is_ours(task: AnyTask) -> bool:
    """Whether ``task`` is a WorkTask: its class is a door of the package, which nothing down here imports."""
    return hasattr(task, "tenant")


def _key(name: str, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Return the key of one job: the task's own, or what its callable answers for the arguments."""
    given = getattr(task, name)
    key: str | None = given(*args, **kwargs) if callable(given) else given
    if key is not None and not isinstance(key, str):
        raise InvalidJobError(f"The {name} of {task.module_path} answered {key!r}. Return a string or None.")
    return key
