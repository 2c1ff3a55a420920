"""Tasks that go on until somebody ends them, some of which do not let themselves be ended."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

from django.db import connection

from django_workqueue import JobContext, JobTimeoutError, Reject, task
from django_workqueue.exceptions import JobCancelledError, JobStoppedError

QUICK = 0.2
MOST_SECONDS = 60

release = threading.Event()
cleaned: list[str] = []
kept: list[object] = []


def spin():
    """Compute for as long as a test may take."""
    until = time.monotonic() + MOST_SECONDS
    while time.monotonic() < until:
        sum(range(100))


@task(timeout=MOST_SECONDS)
def quick():
    """End at once."""


@task(timeout=QUICK)
def compute():
    """Compute and never end."""
    spin()


@task
def compute_for_ever():
    """Do so without a timeout."""
    spin()


@task(timeout=QUICK, reject_on=(JobTimeoutError,))
def compute_once():
    """Compute and never end, nor begin again."""
    spin()


@task(timeout=QUICK)
def compute_with_connection():
    """Do so with a connection."""
    connection.ensure_connection()
    spin()


@task
def connection_id():
    """Name this thread's connection, which is kept so that no other gets its id."""
    connection.ensure_connection()
    kept.append(connection.connection)
    return len({id(each) for each in kept})


@task(timeout=QUICK)
async def wait_async():
    """Wait and never end."""
    await asyncio.sleep(MOST_SECONDS)


@task
async def wait_cleaning_up():
    """Wait and never end, and take some time to clean up."""
    try:
        await asyncio.sleep(MOST_SECONDS)
    finally:
        cleaned.append("begun")
        await asyncio.sleep(0.1)
        cleaned.append("done")


@task(timeout=QUICK)
def catch(ending):
    """Compute, and end in one's own way when the time is over."""
    try:
        spin()
    except JobTimeoutError:
        match ending:
            case "clean_up":
                raise
            case "raise":
                raise ValueError("out of time") from None
            case "reject":
                raise Reject("out of time") from None


@task(timeout=QUICK)
def swallow():
    """Catch what is to end it, and go on."""
    while not release.is_set():
        with contextlib.suppress(JobStoppedError):
            spin_until_released()


def spin_until_released():
    """Compute until the test says that it is enough."""
    while not release.is_set():
        sum(range(100))


@task(timeout=QUICK)
def sleep():
    """Sleep in native code, where nothing is heard."""
    release.wait(MOST_SECONDS)


@task
def until_cancelled(ctx: JobContext):
    """Look whether anybody wants it still."""
    while not ctx.cancelled:
        time.sleep(0.005)
    raise JobCancelledError


@task
def give_up():
    """Find out that nobody wants it any more."""
    raise JobCancelledError("Nobody wants it.")
