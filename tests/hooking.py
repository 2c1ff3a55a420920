"""Hooks for the suite, found by their dotted paths as those of a project are."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from asgiref.sync import sync_to_async
from django.db import connection

from django_workqueue import JobContext
from django_workqueue.hooks import NewJob, in_query_thread

#: What hooks and bodies did, in order. Cleared before each test.
log: list[object] = []

#: Whose request is served, as a middleware of a project with a schema for each tenant knows it.
current_tenant: contextvars.ContextVar[str] = contextvars.ContextVar("current_tenant", default="")

#: What a formatter adds to each line.
log_context: contextvars.ContextVar[dict[str, object] | None] = contextvars.ContextVar("log_context", default=None)

not_a_hook = object()


class RefusedError(Exception):
    """What a hook raises."""


def note_enqueue(new: NewJob) -> None:
    """Remember what was seen."""
    log.append((new.task, new.queue, new.tenant, new.priority, dict(new.metadata)))


def set_tenant(new: NewJob) -> None:
    """Give the job to the tenant whose request it is, unless the caller chose one."""
    new.tenant = new.tenant or current_tenant.get()


def to_slow_lane(new: NewJob) -> None:
    """Send it elsewhere, later, and say so."""
    new.queue, new.priority = "slow/", -7
    new.metadata["moved"] = True


def refuse(new: NewJob) -> None:
    """Keep the job out."""
    raise RefusedError(f"no {new.task} today")


def set_task(new: NewJob) -> None:
    """Try to make it another job."""
    new.task = "tests.samples.add"  # type: ignore[misc]


def set_bad_priority(new: NewJob) -> None:
    """Choose what the checks refuse."""
    new.priority = 1000


def set_bad_metadata(new: NewJob) -> None:
    """Put something in that cannot be stored."""
    new.metadata = None  # type: ignore[assignment]


def leave_story(new: NewJob) -> None:
    """Keep the job out of the story around it."""
    new.metadata.pop("correlation_id", None)


@contextmanager
def outer(context: JobContext) -> Iterator[None]:
    """Remember beginning and end."""
    log.append(f"outer enters {context.attempt}")
    try:
        yield
    except BaseException as error:
        log.append(f"outer sees {type(error).__name__}")
        raise
    finally:
        log.append("outer leaves")


@contextmanager
def inner(_context: JobContext) -> Iterator[None]:
    """Remember beginning and end."""
    log.append("inner enters")
    yield
    log.append("inner leaves")


@asynccontextmanager
async def only_async(_context: JobContext) -> AsyncIterator[None]:
    """Surround coroutines."""
    log.append("async enters")
    yield
    log.append("async leaves")


@contextmanager
def refuse_run(_context: JobContext) -> Iterator[None]:
    """Fail before the body."""
    raise RefusedError("no run today")
    yield


@contextmanager
def fail_after(_context: JobContext) -> Iterator[None]:
    """Fail behind the body."""
    yield
    raise RefusedError("too late")


@contextmanager
def swallow(_context: JobContext) -> Iterator[None]:
    """Let no error pass."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the subject
        log.append(f"swallowed {type(error).__name__}")


def no_manager(_context: JobContext):
    """Forget the decorator."""
    yield


@contextmanager
def bind_log(context: JobContext) -> Iterator[None]:
    """Add the job to every log line of its body, as structlog's ``bound_contextvars`` does."""
    token = log_context.set({"job": str(context.job_id), "correlation_id": context.correlation_id})
    try:
        yield
    finally:
        log_context.reset(token)


@contextmanager
def search_path(schema: str) -> Iterator[None]:
    """Let this thread's connection see a schema first, as django-tenants' ``schema_context`` does."""
    before = schema_of_connection()
    set_schema(schema)
    try:
        yield
    finally:
        set_schema(before)


def tenant_schema(context: JobContext):
    """Let the body see its tenant's schema."""
    return in_query_thread(search_path(context.tenant))


def set_schema(schema: str) -> None:
    """Set the search path; SQLite has none, and a note on the connection takes its place."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('search_path', %s, false)", [f"{schema}, public"])
    else:
        connection.schema = schema


def schema_of_connection() -> str:
    """Return the schema that this thread's queries see first."""
    if connection.vendor != "postgresql":
        return getattr(connection, "schema", "public")
    with connection.cursor() as cursor:
        cursor.execute("SHOW search_path")
        first = cursor.fetchone()[0].partition(",")[0]
    return "public" if "$" in first else first


async def async_schema_of_connection() -> str:
    """Return what a coroutine's queries see."""
    return await sync_to_async(schema_of_connection)()
