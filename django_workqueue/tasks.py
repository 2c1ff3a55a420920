"""``@task``: declare work, and enqueue it in the caller's own transaction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, overload
from uuid import UUID

from asgiref.sync import sync_to_async

from .domain.contract import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    AnyTask,
    AnyTaskResult,
    Task,
)
from .domain.policies import BackoffPolicy
from .domain.registry import note_declared
from .domain.timetables import Schedule, declare
from .exceptions import LONGEST, InvalidJobError
from .lifecycle.enqueue import MOST_AT_ONCE, DedupeUntil, queue_name, whole

DedupeKey = str | Callable[..., str | None]
ConcurrencyKey = DedupeKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One job of an ``enqueue_many``: its arguments, and what is its own."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    job_id: UUID | None = None
    dedupe_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTask(AnyTask):
    """
    A task of ``django.tasks`` with what this queue adds. Make it with ``@task``, vary it with ``using``.

    ``enqueue``, ``aenqueue``, ``get_result``, ``call`` and the rest behave as Django documents them; the result of an
    enqueue also has ``duplicate``.
    """

    # Django 6.0 has no defaults for these: its own decorator gives them all.
    priority: int = DEFAULT_TASK_PRIORITY
    backend: str = DEFAULT_TASK_BACKEND_ALIAS
    queue_name: str = DEFAULT_TASK_QUEUE_NAME
    run_after: Any = None
    """A datetime, or a timedelta from the moment of the enqueue."""
    takes_context: bool = False
    tenant: str = ""
    """Whose work it is. Tenants with work take turns."""
    max_attempts: int | None = None
    """None takes the queue's MAX_ATTEMPTS. Fixed on the job when it is enqueued."""
    backoff: BackoffPolicy | timedelta | None = None
    """A first delay, to double within the queue's BACKOFF_CAP, or a whole policy; None takes the queue's."""
    timeout: timedelta | None = None
    """How long one attempt may run, as a timedelta or in seconds; None takes the queue's TIMEOUT."""
    atomic: bool = False
    """Run the body and record its success in one transaction on the queue's database: both happen, or neither."""
    reject_on: tuple[type[BaseException], ...] = ()
    """Exceptions after which another attempt is pointless: the job goes straight to the dead letters."""
    retention: timedelta | None = None
    """How long the finished job and its result are kept; None takes the queue's RETENTION, zero keeps nothing."""
    dedupe_key: DedupeKey | None = None
    """At most one live job per (queue, tenant, key). A callable is given the arguments; None from it means no key."""
    dedupe_until: DedupeUntil = "finish"
    """``"finish"`` covers waiting and running jobs, ``"start"`` waiting ones only."""
    dedupe_ttl: timedelta | None = None
    """How long the key is kept at most, from the enqueue on; None keeps it as long as ``dedupe_until`` says."""
    concurrency_key: ConcurrencyKey | None = None
    """
    At most ``concurrency_limit`` jobs of one (queue, tenant, key) run at once, in all workers together. A callable is
    given the arguments; None from it means no key.
    """
    concurrency_limit: int = 1
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    job_id: UUID | None = None
    """The job's id, where the caller chooses it. Enqueueing an id that is live answers the stored job."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "queue_name", queue_name(self.queue_name))
        object.__setattr__(self, "backoff", _backoff(self.backoff))
        object.__setattr__(self, "retention", duration("retention", self.retention))
        object.__setattr__(self, "timeout", _timeout(self.timeout))
        object.__setattr__(self, "dedupe_ttl", duration("dedupe_ttl", self.dedupe_ttl, may_be_zero=False))
        whole("concurrency_limit", self.concurrency_limit, 1, MOST_AT_ONCE)
        if self.atomic and inspect.iscoroutinefunction(self.func):
            raise TypeError(
                f"{self.func.__qualname__} is a coroutine function and cannot be atomic: Django has no transactions "
                "across awaits. Make it a plain function, or leave atomic out."
            )
        Task.__post_init__(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        tenant: str | None = None,
        max_attempts: int | None = None,
        dedupe_key: DedupeKey | None = None,
        dedupe_until: DedupeUntil | None = None,
        dedupe_ttl: timedelta | float | None = None,
        concurrency_key: ConcurrencyKey | None = None,
        concurrency_limit: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        job_id: UUID | None = None,
    ) -> WorkTask:
        """
        Return a task that differs in what is given; None leaves a value as it is, ``metadata`` is added.

        What is missing here, such as ``backoff``, is looked up on the declared task when the job has run.
        """
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        if metadata is not None:
            given["metadata"] = {**self.metadata, **metadata}
        return replace(self, **given)

    def signature(self, *args: Any, **kwargs: Any) -> Signature:
        """Return a call of this task to be a member of a workflow: of a chain, a group or a chord."""
        return Signature(self, args, kwargs)

    def enqueue_many(self, calls: Iterable[Call | tuple[Any, ...] | Mapping[str, Any]]) -> Sequence[AnyTaskResult]:
        """
        Enqueue a job for each call, in one step of the caller's transaction, and return their results in order.

        On our backend each is a WorkResult. A call is a tuple of positional arguments, a mapping of keyword arguments,
        or a ``Call``. All are checked before anything is written; clashes are answered with the stored job and marked,
        and do not stop the others.
        """
        backend = self.get_backend()
        made = [_call(call) for call in calls]
        many = getattr(backend, "enqueue_many", None)
        if many is not None:
            results: Sequence[AnyTaskResult] = many(self, made)
            return results
        return [backend.enqueue(self, list(call.args), dict(call.kwargs)) for call in made]

    async def aenqueue_many(
        self, calls: Iterable[Call | tuple[Any, ...] | Mapping[str, Any]]
    ) -> Sequence[AnyTaskResult]:
        """See enqueue_many."""
        return await sync_to_async(self.enqueue_many)(calls)


@dataclass(frozen=True, slots=True)
class Signature:
    """
    A task with its arguments, to be a member of a workflow. Make it with ``task.signature(...)``.

    The result of the member before is put in front of the arguments, unless it is ``ignoring_previous()``.
    """

    task: AnyTask
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    takes_previous: bool = True

    def using(self, **options: Any) -> Signature:
        """Return a signature whose job differs in what is given. The options are those of the task's ``using``."""
        return replace(self, task=self.task.using(**options))

    def ignoring_previous(self) -> Signature:
        """Return a signature that is called with its own arguments alone, wherever it stands."""
        return replace(self, takes_previous=False)


def _call(call: Any) -> Call:
    if isinstance(call, Call):
        return call
    if isinstance(call, tuple):
        return Call(args=call)
    if isinstance(call, Mapping):
        return Call(kwargs=call)
    raise InvalidJobError(
        f"A call is of type {type(call).__name__}. Pass a tuple of arguments, a mapping of keyword arguments or a Call."
    )


def _backoff(given: Any) -> BackoffPolicy | timedelta | None:
    return given if isinstance(given, BackoffPolicy) else duration("backoff", given)


def _timeout(given: Any) -> timedelta | None:
    timeout = duration("timeout", given)
    if timeout == timedelta():
        raise InvalidJobError(f"timeout is {given!r}. Give an attempt more than zero seconds.")
    return timeout


def duration(name: str, given: Any, *, may_be_zero: bool = True) -> timedelta | None:
    """Return ``given``, seconds or a timedelta, as one; None stays so. Raises InvalidJobError."""
    if given is None:
        return None
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = timedelta(seconds=given)
    if not isinstance(given, timedelta) or not timedelta() <= given <= LONGEST:
        raise InvalidJobError(f"{name} is {given!r}. Pass a timedelta or seconds, from zero to a century.")
    if not given and not may_be_zero:
        raise InvalidJobError(f"{name} is zero. Leave it out, or pass more.")
    return given


@overload
def task(function: Callable[..., Any], /) -> WorkTask: ...


@overload
def task(
    *,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    takes_context: bool = ...,
    tenant: str = ...,
    max_attempts: int | None = ...,
    backoff: BackoffPolicy | timedelta | float | None = ...,
    timeout: timedelta | float | None = ...,
    atomic: bool = ...,
    reject_on: tuple[type[BaseException], ...] = ...,
    retention: timedelta | float | None = ...,
    dedupe_key: DedupeKey | None = ...,
    dedupe_until: DedupeUntil = ...,
    dedupe_ttl: timedelta | float | None = ...,
    concurrency_key: ConcurrencyKey | None = ...,
    concurrency_limit: int = ...,
    metadata: Mapping[str, Any] = ...,
    schedule: Schedule = ...,
) -> Callable[[Callable[..., Any]], WorkTask]: ...


def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """
    Make a task of a function at module level, as ``django.tasks.task`` does, with the options of ``WorkTask``.

    It makes a WorkTask on any backend, so that a project whose tests use Django's immediate or dummy backend can be
    imported. ``run_after`` and ``job_id`` belong to one job: set them by ``using``.

    ``schedule``, a cron line, a timedelta, a Timetable or several, has workers enqueue it again and again.
    """
    for name in ("run_after", "job_id"):
        if name in options:
            raise TypeError(f"{name} belongs to one job and not to its task. Use .using({name}=...) when you enqueue.")
    options.setdefault("backend", DEFAULT_TASK_BACKEND_ALIAS)
    schedule = options.pop("schedule", None)

    def make(func: Callable[..., Any]) -> WorkTask:
        made = WorkTask(func=func, **options)
        note_declared(made)
        if schedule is not None:
            declare(made.module_path, schedule)
        return made

    return make if function is None else make(function)
