"""What the workers do while they are besieged."""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import Any

from django_workqueue import JobContext, task
from django_workqueue.tasks import WorkTask


@task
def nothing() -> None:
    """Return at once: what is measured is the queue."""


@task
def work(seconds: float) -> None:
    """Take some time."""
    time.sleep(seconds)


@task
async def work_async(seconds: float) -> None:
    """Take some time in the event loop."""
    await asyncio.sleep(seconds)


@task(takes_context=True)
def fail_until(context: JobContext, attempt: int) -> None:
    """Fail in every attempt before this one."""
    if context.attempt < attempt:
        raise ValueError(f"Attempt {context.attempt} fails.")


def draw(kind: str, dice: Random) -> tuple[WorkTask, tuple[Any, ...]]:
    """Return a task and arguments for a job of that kind."""
    match kind:
        case "short":
            return work, (dice.uniform(0, 0.03),)
        case "long":
            return work, (dice.uniform(0.5, 1.5),)
        case "coroutine":
            return work_async, (dice.uniform(0, 0.03),)
        case "fails once":
            return fail_until, (2,)
        case "always fails":
            return fail_until.using(max_attempts=2), (99,)
        case _:
            return nothing, ()
