"""What holds for every job of one task in one queue, worked out once: looking it up costs more than a short job."""

from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from django.core.signals import setting_changed
from django.dispatch import receiver

from ..conf import get_settings
from ..domain.contract import AnyTask
from ..domain.hooks import run_hooks
from ..domain.policies import BackoffPolicy
from ..domain.registry import resolve, wants_context
from ..hooks import RunHook


class Terms(NamedTuple):
    """A task, how its function is called, and the policies of its jobs in one queue."""

    task: AnyTask
    is_async: bool
    """Whether the function is a coroutine function."""
    is_atomic: bool
    """Whether the body and its completion are one transaction."""
    wants_context: bool
    """Whether the function is given a JobContext."""
    run_hooks: tuple[RunHook, ...]
    """What the project puts around each run."""
    timeout: float | None
    """Seconds that an attempt may run; None for no limit."""
    backoff: BackoffPolicy
    retention: timedelta


@lru_cache(maxsize=1024)
def terms_of(path: str, queue: str) -> Terms:
    """Return the terms of the task stored under ``path``. Raises TaskNotRegisteredError when there is none."""
    return terms_for(resolve(path), queue)


def terms_for(task: AnyTask, queue: str) -> Terms:
    """Return the terms of ``task`` in ``queue``."""
    policy = get_settings().queue(queue)
    retention: timedelta | None = getattr(task, "retention", None)
    timeout: timedelta | None = getattr(task, "timeout", None) or policy.timeout
    return Terms(
        task=task,
        is_async=inspect.iscoroutinefunction(task.func),
        is_atomic=getattr(task, "atomic", False),
        wants_context=wants_context(task),
        run_hooks=run_hooks(),
        timeout=None if timeout is None else timeout.total_seconds(),
        backoff=_backoff(task, policy.backoff),
        retention=policy.retention if retention is None else retention,
    )


def _backoff(task: AnyTask, policy: BackoffPolicy) -> BackoffPolicy:
    """Return the task's own backoff: a whole policy, or a first delay that goes into the queue's policy."""
    own: BackoffPolicy | timedelta | None = getattr(task, "backoff", None)
    if isinstance(own, timedelta):
        return replace(policy, base=own, cap=max(own, policy.cap))
    return own or policy


@receiver(setting_changed)
def _forget(*, setting: str, **_kwargs: object) -> None:
    if setting in {"WORKQUEUE", "TASKS"}:
        terms_of.cache_clear()
