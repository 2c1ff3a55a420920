"""Tasks for the suite. Not called ``tasks``: nothing may find them but by their stored path."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import threading
from functools import partial

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from django_workqueue import JobContext, Reject, RetryAfter, task
from django_workqueue.domain.contract import Task
from django_workqueue.domain.trace import correlation_id

#: ``django.tasks.task`` on Django 6, its backport's on 5.2: the decorator of those who do not know us.
contract_task = importlib.import_module(Task.__module__).task


class OutOfPaperError(Exception):
    """What a failing task raises."""


class NoSuchCustomerError(LookupError):
    """What makes another attempt pointless."""


class NotRetryableError(Exception):
    """Says of itself that another attempt is pointless."""

    retryable = False


@task
def add(left, right):
    """Add two values."""
    return left + right


@task(priority=7, queue_name="mail", tenant="acme", max_attempts=2, retention=60, metadata={"team": "shop"})
def send(address, *, copy=False):
    """Send something, with every kind of option."""
    return {"address": address, "copy": copy}


@task
def ask_database():
    """Ask twice."""
    return Group.objects.count() + Group.objects.count()


@task
def fail(message="no paper"):
    """Fail each time."""
    raise OutOfPaperError(message)


@task(reject_on=(NoSuchCustomerError,))
def fail_by(name):
    """Raise what ``name`` says."""
    errors = {
        "reject": Reject("the address is wrong"),
        "reject_on": NoSuchCustomerError("gone"),
        "not_retryable": NotRetryableError("never"),
        "retry_after": RetryAfter(90, "busy"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
    }
    raise errors[name]


@task(takes_context=True)
def describe(context: JobContext):
    """Return what a task sees of its own delivery."""
    return {
        "attempt": context.attempt,
        "last_error": context.last_error,
        "job_id": str(context.job_id),
        "metadata": dict(context.metadata),
    }


@task
def describe_ctx(note, ctx: JobContext):
    """Ask for the context by a parameter's name."""
    return f"{note} {ctx.attempt}"


@task
def injected(ctx="from an injector"):
    """Have ``ctx`` filled by somebody else."""
    return ctx


@task
async def add_async(left, right):
    """Add two values, in an event loop."""
    return left + right


@task(dedupe_key=lambda order_id: f"order-{order_id}")
def bill(order_id):
    """One live job for each order."""
    return order_id


@task(dedupe_key="nightly", dedupe_until="start")
def rebuild_index():
    """One waiting job; an event during the run makes another."""


@contract_task
def plain(left, right):
    """Multiply, for somebody who knows ``django.tasks`` alone."""
    return left * right


@contract_task(takes_context=True)
def plain_with_context(context):
    """Use what ``django.tasks`` documents of its context."""
    return context.attempt


@task
def return_it(value):
    """Return the argument."""
    return value


@task
def return_thread():
    """Say where it ran."""
    return threading.current_thread().name


@task
def read_trace():
    """Return the correlation id that holds during the run."""
    return correlation_id.get()


@task
def log_a_line():
    """Write a log line."""
    logging.getLogger("tests.shop").warning("sold out")


@task(backoff=60, retention=0)
def patient():
    """Wait a minute after a failure, and leave nothing behind."""


@task
def return_coroutine(left, right):
    """Be no coroutine function and return a coroutine all the same, as many decorators do."""
    return add_async.func(left, right)


@task
async def cancel_itself():
    """End as if somebody had cancelled it."""
    raise asyncio.CancelledError


@task
async def wait_for_ever():
    """Never end by itself."""
    await asyncio.Event().wait()


not_a_task = object()


@task
def scheduled_for(*, ctx: JobContext):
    """Tell which firing of its schedule the job stands for."""
    return ctx.scheduled_for and ctx.scheduled_for.isoformat()


def _no_key():
    raise LookupError("no key today")


@task(dedupe_key=_no_key)
def keyed_badly():
    """Do nothing; its key cannot be made."""


@task(atomic=True)
def add_group(name, *, error="", follow=False):
    """Write a row, and with ``follow`` enqueue a job, in the transaction that records the success."""
    Group.objects.create(name=name)
    if follow:
        add.enqueue(1, 2)
    if error:
        raise OutOfPaperError(error)
    return name


@task(atomic=True)
def add_group_and_hook(name):
    """Leave a callback for after the commit that raises."""
    Group.objects.create(name=name)
    transaction.on_commit(partial(_raise_after, name))


@task(atomic=True, retention=0)
def add_group_untraced(name):
    """Do it, and leave no row of it."""
    Group.objects.create(name=name)


@task(atomic=True)
def add_group_and_return_it(name):
    """Return what JSON does not have."""
    return Group.objects.create(name=name)


@task(atomic=True, takes_context=True)
def add_group_by_step(context, name):
    """Write the row in a step: its record is part of the same transaction."""
    return context.once("add", _add_group, name)


@task(atomic=True)
def break_own_transaction(name):
    """Catch an error of the database that has broken the transaction."""
    Group.objects.create(name=name)
    with contextlib.suppress(IntegrityError):
        Group.objects.create(name=name)


def _add_group(name):
    return Group.objects.create(name=name).name


def _raise_after(name):
    raise OutOfPaperError(name)


@task(dedupe_key="mine", dedupe_until="start", dedupe_ttl=60)
def keyed_for_a_while():
    """Do nothing; its key is free while it runs, and after a minute."""


@task
def sign_in(user, token, *codes, profile=None, **extra):
    """Take what nobody is to see, in every way in which a task can be given it."""
    return {"user": user, "token": token, "codes": codes, "profile": profile, **extra}
