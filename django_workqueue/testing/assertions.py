"""Looking at what is enqueued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from ..backend import WorkQueueBackend
from ..domain.contract import AnyTask, Task, task_backends
from ..domain.states import JobState
from ..models import Job
from ..store import store_for
from .backends import DummyBackend

MOST_LISTED = 20
"""Jobs that a message lists."""
# Between the look at the clock that makes a delay a moment, and the insert that stamps the job, some time passes.
_TOLERANCE = timedelta(seconds=1)


class Criteria(TypedDict, total=False):
    """What a job is known by. What is left out, or None, matches anything."""

    args: Sequence[Any] | None
    kwargs: Mapping[str, Any] | None
    queue: str | None
    tenant: str | None
    run_after: datetime | timedelta | None
    """The moment at which it is due, or its delay since it was enqueued, to the second."""


def enqueued(
    task: AnyTask | str | None = None, *, database: str | None = None, **criteria: Unpack[Criteria]
) -> list[Job]:
    """
    Return the live jobs of ``task`` that meet the criteria, oldest first: those that wait and those that run.

    ``task`` is a task or its dotted path, ``criteria`` are ``args``, ``kwargs``, ``queue``, ``tenant`` and
    ``run_after``. Jobs that a ``DummyBackend`` remembers count too, as unsaved rows.
    """
    wanted = _Wanted(task, **criteria)
    return [job for job in _live(database) if wanted.matches(job)]


def assert_enqueued(
    task: AnyTask | str | None = None,
    *,
    times: int | None = None,
    database: str | None = None,
    **criteria: Unpack[Criteria],
) -> list[Job]:
    """
    Assert that such jobs are live: ``times`` of them or, when that is None, at least one. Returns them.

    See ``enqueued`` for what matches. The message lists what is there.
    """
    __tracebackhide__ = True
    wanted, live = _Wanted(task, **criteria), _live(database)
    found = [job for job in live if wanted.matches(job)]
    is_as_expected = bool(found) if times is None else len(found) == times
    if not is_as_expected:
        expected = "at least 1" if times is None else str(times)
        raise AssertionError(f"Expected {expected} of {wanted}, found {len(found)}. {_listing(live)}")
    return found


def assert_not_enqueued(
    task: AnyTask | str | None = None, *, database: str | None = None, **criteria: Unpack[Criteria]
) -> None:
    """Assert that no such job is live. See ``enqueued`` for what matches."""
    __tracebackhide__ = True
    assert_enqueued(task, times=0, database=database, **criteria)


@dataclass(frozen=True)
class _Wanted:
    """What a caller asks for; None is anything."""

    task: AnyTask | str | None
    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    queue: str | None = None
    tenant: str | None = None
    run_after: datetime | timedelta | None = None

    @property
    def columns(self) -> dict[str, Any]:
        columns = {
            "task": self.task.module_path if isinstance(self.task, Task) else self.task,
            "args": None if self.args is None else list(self.args),
            "kwargs": None if self.kwargs is None else dict(self.kwargs),
            "queue": self.queue,
            "tenant": self.tenant,
        }
        return {name: value for name, value in columns.items() if value is not None}

    def matches(self, job: Job) -> bool:
        return self._is_due_then(job) and all(_value(job, name) == value for name, value in self.columns.items())

    def _is_due_then(self, job: Job) -> bool:
        if isinstance(self.run_after, timedelta):
            return abs(job.ready_at - job.enqueued_at - self.run_after) < _TOLERANCE
        return self.run_after is None or job.ready_at == self.run_after

    def __str__(self) -> str:
        columns = self.columns | ({} if self.run_after is None else {"run_after": self.run_after})
        return (
            "a job with " + ", ".join(f"{name}={value!r}" for name, value in columns.items()) if columns else "any job"
        )


def _value(job: Job, name: str) -> Any:
    """Return one column, decoded if it is encoded. What cannot be decoded stays text, and so is no list or dict."""
    value = getattr(job, name)
    try:
        return getattr(job, f"decoded_{name}", value)
    except ValueError:
        return value


def _live(database: str | None) -> list[Job]:
    backends = task_backends.all()
    live = [job for backend in backends if isinstance(backend, DummyBackend) for job in backend.jobs]
    # Where no backend stores jobs, a test may be forbidden to touch the database.
    if any(isinstance(backend, WorkQueueBackend) for backend in backends):
        live += Job.objects.using(store_for(database).alias).order_by("enqueued_at", "id")
    return live


def _listing(jobs: Sequence[Job]) -> str:
    if not jobs:
        return "Nothing is enqueued."
    lines = [f"  {_line(job)}" for job in jobs[:MOST_LISTED]]
    if len(jobs) > MOST_LISTED:
        lines.append(f"  ... and {len(jobs) - MOST_LISTED} more")
    return "\n".join(["Enqueued are:", *lines])


def _line(job: Job) -> str:
    due = f" for {job.ready_at.isoformat(timespec='seconds')}" if job.state == JobState.SCHEDULED else ""
    tenant = f", tenant={job.tenant!r}" if job.tenant else ""
    return f"{job.task}: args={job.args}, kwargs={job.kwargs}, queue={job.queue!r}{tenant}, {job.state}{due}"
