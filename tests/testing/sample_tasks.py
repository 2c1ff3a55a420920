"""Tasks for the helpers' tests. Not called ``tasks``: they are found by their stored path alone."""

from __future__ import annotations

import asyncio
import contextvars
from datetime import date

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.utils import timezone, translation

from django_workqueue import JobContext, Reject, RetryAfter, task
from django_workqueue.lifecycle import operate
from django_workqueue.models import Job
from django_workqueue.testing import advance

#: What bodies did, in order. Cleared before each test.
done: list[object] = []

whoever = contextvars.ContextVar("whoever", default="nobody")


class BrokenError(Exception):
    """What failing bodies raise."""


@task
def note(value):
    """Remember a value."""
    done.append(value)
    return value


@task(queue_name="mail")
def note_in_mail(value):
    """Remember a value, in another queue."""
    done.append(value)


@task
async def note_later(value):
    """Remember a value, in an event loop, and use the database from there."""
    await asyncio.sleep(0)
    await Group.objects.acreate(name=value)
    done.append(value)


@task
def note_and_go_on(count):
    """Enqueue a job after this one."""
    done.append(count)
    if count:
        note_and_go_on.enqueue(count - 1)


@task
def for_ever():
    """Enqueue itself."""
    for_ever.enqueue()


@task(max_attempts=3)
def fail(message):
    """Write a row, then fail."""
    Group.objects.create(name=f"before {message}")
    raise BrokenError(message)


@task(max_attempts=3, backoff=10)
def fail_twice(ctx: JobContext):
    """Succeed at the third attempt."""
    done.append(ctx.attempt)
    if ctx.attempt < 3:
        raise BrokenError(f"attempt {ctx.attempt}")
    return "third time lucky"


@task
def break_the_transaction(name):
    """Violate a constraint without a block of its own: on PostgreSQL the whole transaction is unusable then."""
    transaction.on_commit(lambda: done.append("committed"))
    Group.objects.create(name=name)
    Group.objects.create(name=name)


@task
def survive_an_error(name):
    """Violate a constraint inside a block, and go on."""
    Group.objects.create(name=name)
    try:
        with transaction.atomic():
            transaction.on_commit(lambda: done.append("never"))
            Group.objects.create(name=name)
    except IntegrityError:
        transaction.on_commit(lambda: done.append("survived"))


@task
def commit(name):
    """Leave something for after the commit, and something that follows from that."""
    with transaction.atomic(durable=True):
        Group.objects.create(name=name)
        transaction.on_commit(lambda: transaction.on_commit(lambda: done.append(f"after {name}")))
    done.append(name)


@task
def commit_badly(*, robust):
    """Leave a callback that fails."""
    transaction.on_commit(_raise, robust=robust)


def _raise():
    raise BrokenError("after the commit")


@task
def reject():
    """Give up for good."""
    raise Reject("wrong address")


@task
def try_later(seconds):
    """Ask for another time."""
    raise RetryAfter(seconds)


@task
def interrupt():
    """Be stopped by whoever runs the tests."""
    raise KeyboardInterrupt


@task
def leave():
    """Do what no worker lets a job do."""
    raise SystemExit(3)


@task
def look_around():
    """Return what this body sees of its surroundings."""
    return [translation.get_language(), timezone.get_current_timezone_name(), whoever.get()]


@task
def hand_over(value):
    """Enqueue on another backend."""
    note.using(backend="remembering").enqueue(value)


@task
def overstay():
    """Take longer than the lease allows, by moving time."""
    advance(31)


@task(takes_context=True, tenant="acme", metadata={"team": "shop"})
def describe(context: JobContext):
    """Return what a body is told of its job."""
    result = context.task_result
    return {
        "job_id": str(context.job_id) == result.id,
        "attempt": context.attempt,
        "tenant": context.tenant,
        "metadata": dict(context.metadata),
        "status": str(result.status),
        "worker_ids": len(result.worker_ids),
    }


@task
def returns(kind):
    """Return something that JSON has, or has not."""
    return {
        "tuple": (1, (2, 3)),
        "int keys": {1: "one"},
        "date": date(2020, 2, 29),
        "nan": float("nan"),
        "plain": {"a": [1, 2.5, None, "ü"]},
    }[kind]


@task
def takes(value):
    """Take an argument and show what has become of it."""
    done.append(value)
    return repr(value)


@task(atomic=True)
def add_group_atomically(name, error=""):
    """Write a row and enqueue a job in the transaction of the success."""
    Group.objects.create(name=name)
    note.enqueue(name)
    transaction.on_commit(lambda: done.append("committed"))
    if error:
        raise BrokenError(error)
    return name


@task(takes_context=True)
def remember_once(context: JobContext, value):
    """Remember a value once for the job, and fail in the first attempt."""
    kept = context.once("remember", _remember, value)
    if not context.is_retry:
        raise BrokenError("the first attempt")
    return kept


def _remember(value):
    done.append(value)
    return value


@task
def reach_out(ctx: JobContext):
    """Report progress, renew the lease, and have oneself cancelled."""
    ctx.progress(1, 2, "half")
    stored = Job.objects.get(pk=ctx.job_id).progress
    ctx.heartbeat()
    before = ctx.cancelled
    operate.cancel([ctx.job_id])
    done.append((stored, before, ctx.cancelled))
    ctx.heartbeat()


@task
async def reach_out_later(ctx: JobContext):
    """Do so in a coroutine."""
    ctx.progress(1, 2, "half")
    await ctx.aheartbeat()
    before = ctx.cancelled
    await sync_to_async(operate.cancel)([ctx.job_id])
    try:
        await ctx.aheartbeat()
    finally:
        stored = (await Job.objects.aget(pk=ctx.job_id)).progress
        done.append((stored, before, ctx.cancelled))


@task
def fail_when_cancelled(ctx: JobContext):
    """Have oneself cancelled, and fail."""
    operate.cancel([ctx.job_id])
    raise ValueError("too late")


@task
def return_when_cancelled(ctx: JobContext):
    """Have oneself cancelled, and return all the same."""
    operate.cancel([ctx.job_id])
    return "done"
