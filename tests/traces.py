"""Tasks that leave traces, and tasks that look for them."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.utils import timezone, translation

from django_workqueue import task

mark: contextvars.ContextVar[str | None] = contextvars.ContextVar("mark", default=None)
running = 0
waiting: list[asyncio.Event] = []


@task
def look_around():
    """Return what an earlier job may have left."""
    return [translation.get_language(), timezone.get_current_timezone_name(), mark.get()]


@task
async def look_around_async():
    """Return what an earlier job may have left in the event loop."""
    return look_around.func()


@task
def leave_language():
    """Change language and time zone."""
    translation.activate("de")
    timezone.activate("Pacific/Auckland")


@task
def leave_context():
    """Set a context variable."""
    mark.set("left")


@task
async def leave_async_context():
    """Set a context variable in the loop, and change language and time zone."""
    mark.set("left")
    leave_language.func()


@task
def leave_transaction():
    """Enter a transaction and never leave it."""
    transaction.atomic().__enter__()


@task
async def leave_async_transaction():
    """Do so in the thread of a coroutine's synchronous parts."""
    await sync_to_async(leave_transaction.func)()


@task
def in_transaction():
    """Say whether somebody's transaction is open."""
    connection.ensure_connection()
    return connection.in_atomic_block


@task
def connection_id():
    """Name this thread's connection."""
    connection.ensure_connection()
    return id(connection.connection)


@task
async def async_thread():
    """Say where it ran."""
    return threading.current_thread().name


@task
async def cancel_own_task():
    """Cancel the task that it runs in."""
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    await asyncio.sleep(0)


@task
async def exit_in_the_loop():
    """Try to end the process from within the loop."""
    raise SystemExit(3)


@task
async def overlap():
    """Return how many run at the same time."""
    global running  # noqa: PLW0603 - what is measured is common to all runs
    running += 1
    most = running
    await asyncio.sleep(0.001)
    most = max(most, running)
    running -= 1
    return most


@task
async def meet():
    """Wait for another run of the same task."""
    if waiting:
        waiting.pop().set()
        return "met"
    waiting.append(event := asyncio.Event())
    await asyncio.wait_for(event.wait(), 30)
    return "met"
