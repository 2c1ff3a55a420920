"""Tasks for workers to run. Each writes its start into the diary before anything else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time

from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction

from django_workqueue import task

from .diary import worker_diary


def start(context, note=""):
    """Write the start of this attempt."""
    worker_diary().write("start", str(context.job_id), context.attempt, note)


@task(takes_context=True)
def record(context, note=""):
    """Do nothing but leave a trace."""
    start(context, note)
    return note


@task(takes_context=True)
def nap(context, seconds, note=""):
    """Run for a while."""
    start(context, note)
    time.sleep(seconds)


@task(takes_context=True)
def occupy(context, seconds):
    """Run for a while, and leave a trace of the beginning and of the end."""
    start(context)
    time.sleep(seconds)
    worker_diary().write("end", str(context.job_id), context.attempt)


@task(takes_context=True)
def hold(context, gate="gate", error=""):
    """Run until the test opens the gate, then return the attempt's number, or raise ``error``."""
    start(context)
    worker_diary().pass_gate(gate, context.attempt)
    worker_diary().write("end", str(context.job_id), context.attempt)
    if error:
        raise ValueError(error)
    return context.attempt


@task(takes_context=True)
async def hold_async(context, gate="gate"):
    """Do as hold does, in the event loop."""
    start(context)
    await asyncio.to_thread(worker_diary().pass_gate, gate, context.attempt)
    return context.attempt


@task(takes_context=True)
def kill_own_worker(context):
    """Kill the process that runs it, as running out of memory does."""
    start(context)
    os.kill(os.getpid(), signal.SIGKILL)


def charge(job, amount):
    """Have an effect on the outside: a line in the diary."""
    worker_diary().write("charge", job, amount)
    return f"receipt {amount}"


def charge_and_die(job, amount):
    """Have it, and take the worker along before anybody hears of it."""
    charge(job, amount)
    os.kill(os.getpid(), signal.SIGKILL)


@task(takes_context=True)
def charge_once(context, deaths):
    """Charge once, and kill the worker before the end of the first ``deaths`` attempts."""
    start(context)
    receipt = context.once("charge", charge, str(context.job_id), 5)
    if context.attempt <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return receipt


@task(takes_context=True)
async def charge_once_async(context, deaths):
    """Do so in the event loop."""
    start(context)
    receipt = await context.aonce("charge", charge, str(context.job_id), 5)
    if context.attempt <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return receipt


@task(takes_context=True)
def charge_in_doubt(context):
    """Die inside the step."""
    start(context)
    return context.once("charge", charge_and_die, str(context.job_id), 5)


_hoard: list[bytes] = []


@task(takes_context=True)
def grow(context, megabytes):
    """Take memory and keep it; slowly enough for its worker to look at it in between."""
    start(context)
    _hoard.append(b"x" * megabytes * 2**20)
    time.sleep(0.5)


@task(takes_context=True)
def leave_orphan(context):
    """Start a process whose parent ends before it does."""
    start(context)
    subprocess.run(["/bin/sh", "-c", "sleep 0.2 &"], check=True)


@task(takes_context=True, atomic=True)
def add_group(context, gate=""):
    """Write a row and enqueue a job, wait for the gate, and commit all of it with the success."""
    start(context)
    Group.objects.create(name=f"attempt {context.attempt}")
    record.enqueue(f"after attempt {context.attempt}")
    if gate:
        worker_diary().pass_gate(gate, context.attempt)
    return context.attempt


@task(takes_context=True)
def read_back(context, token):
    """Return what the database answers to a question that only this job asks."""
    start(context)
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s", [token])
        return cursor.fetchone()[0]


@task(takes_context=True)
def raise_after_commit(context):
    """Register a hook that raises when the job leaves its own transaction."""
    start(context)
    with transaction.atomic():
        Group.objects.create(name=str(context.job_id))
        transaction.on_commit(_raise)


@task(takes_context=True)
def leave_hook_behind(context):
    """Leave a transaction open with a hook in it that raises."""
    start(context)
    transaction.atomic().__enter__()
    transaction.on_commit(_raise)


@task(takes_context=True)
def spoil_transaction(context):
    """Catch an integrity error inside a transaction, go on in it, and fail."""
    start(context)
    with transaction.atomic():
        Group.objects.create(pk=10_000, name="first")
        try:
            Group.objects.create(pk=10_000, name="second")
        except IntegrityError:
            list(Group.objects.all())


@task(takes_context=True)
def leave_transaction_broken(context):
    """Break a transaction that nobody closes, and fail."""
    start(context)
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM no_such_table")


@task(takes_context=True)
def leave_own_transaction_open(context):
    """Write in a transaction begun by hand, and forget it."""
    start(context)
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO auth_group (name) VALUES ('never committed')")


@task(takes_context=True)
def nest_transactions(context):
    """Open a transaction of Django's inside one begun by hand, which no database allows."""
    start(context)
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    with transaction.atomic():
        Group.objects.create(name="never created")


@task(takes_context=True)
def create_group(context, name):
    """Write a row, committed at once."""
    start(context)
    Group.objects.create(name=name)


@task
def ask(times, seconds=0.0):
    """Ask the database so many times, and then take a while."""
    for number in range(times):
        Group.objects.filter(pk=-number).exists()
    time.sleep(seconds)


@task(takes_context=True)
def lose_connection(context, *, then_query):
    """Let the server end the job's own session; with ``then_query`` the job notices, without it nobody does."""
    start(context)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        own = cursor.fetchone()[0]
    killer = connection.copy()
    try:
        with killer.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [own])
    finally:
        killer.close()
    if then_query:
        Group.objects.count()


def _raise():
    raise RuntimeError("raised by a hook")


@task(takes_context=True)
def record_firing(context):
    """Write down which firing of which schedule this is."""
    start(context, f"{context.metadata['_schedule']} {context.scheduled_for:%m-%d %H:%M:%S}")


@task(takes_context=True)
def sleep_deaf(context, seconds):
    """Sleep in one native call, as in a C library: no error reaches it before it returns."""
    start(context)
    time.sleep(seconds)
    worker_diary().write("end", str(context.job_id), context.attempt)


@task(takes_context=True, timeout=1)
def sleep_deaf_too_long(context, seconds):
    """Do so for longer than it may."""
    sleep_deaf.func(context, seconds)


@task(takes_context=True, timeout=1)
def compute_too_long(context):
    """Compute for longer than it may."""
    start(context)
    while True:
        sum(range(1000))


@task(takes_context=True)
def loop_until_cancelled(context):
    """Work in small steps, and look between them whether anybody wants it still."""
    start(context)
    while True:
        time.sleep(0.02)
        if context.cancelled:
            worker_diary().write("heard", str(context.job_id), context.attempt)
            context.heartbeat()


@task(takes_context=True)
async def wait_until_cancelled(context):
    """Wait, and clean up when it is cancelled."""
    start(context)
    try:
        await asyncio.sleep(300)
    finally:
        worker_diary().write("heard", str(context.job_id), context.attempt)


@task(takes_context=True)
def report_inside_transaction(context):
    """Report progress from inside a transaction that stays open until the test opens the gate."""
    start(context)
    with transaction.atomic():
        Group.objects.create(name=str(context.job_id))
        context.progress(3, 10, "rows")
        context.heartbeat()
        worker_diary().pass_gate("gate", context.attempt)
