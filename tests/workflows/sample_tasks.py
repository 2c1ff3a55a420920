"""Members of workflows. What they return tells what they were given, and in which order."""

from __future__ import annotations

from django_workqueue import JobContext, task


@task
def say(*words):
    """Return the arguments."""
    return list(words)


@task(atomic=True)
def say_atomically(*words):
    """Return the arguments, in the transaction that records them."""
    return list(words)


@task
def join(given, *words):
    """Return what came before and the own words, as one text."""
    return "-".join([*(given if isinstance(given, list) else [str(given)]), *words])


@task(retention=0)
def forget(value):
    """Return a value of which no finished job is kept."""
    return value


@task(max_attempts=1)
def fail(*_args):
    """Fail for good."""
    raise ValueError("no paper")


@task(max_attempts=1)
def fail_unless_told(*_args, ctx: JobContext):
    """Fail at the first attempt, and succeed after a requeue."""
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return "mended"


@task
async def say_async(*words):
    """Return the arguments, from an event loop."""
    return list(words)


@task(takes_context=True)
def describe(context: JobContext, *_args):
    """Return what travels along with a member."""
    return {"tenant": context.tenant, "metadata": dict(context.metadata)}


@task(dedupe_key="one")
def keyed():
    """Be suppressed where another one is there."""


@task
def no_input():
    """Have no parameter for a result."""
    return "ran"


@task(concurrency_key=lambda place: f"place-{place}", concurrency_limit=1)
def limited(place):
    """Run one at a time for each place."""
    return f"limited {place}"


@task
def call(*given_and_name):
    """Return the own name, and what was given before it, if anything was."""
    *given, name = given_and_name
    return [name, *given]


@task(atomic=True, retention=0)
def forget_atomically(value):
    """Return a value in the transaction that records the success."""
    return value
