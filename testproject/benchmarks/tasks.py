"""The tasks that are measured: as little as can be, so that what is measured is the queue."""

from __future__ import annotations

import os
import time
from functools import cache

from django_workqueue import task


@task
def noop(number: int) -> None:
    """Return at once."""


@task
async def noop_async(number: int) -> None:
    """Return at once, in the event loop."""


@task
def stamp(number: int) -> None:
    """Note the moment of the start."""
    note(number, time.monotonic_ns())


def note(number: int, moment: int) -> None:
    """Append a job's number and moment to the file that ``BENCHMARK_STAMPS`` names, in one write."""
    os.write(_stamps(), b"%d %d\n" % (number, moment))


@cache
def _stamps() -> int:
    return os.open(os.environ["BENCHMARK_STAMPS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
