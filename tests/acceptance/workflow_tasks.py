"""Members of workflows, for workers to run. Each writes into the diary what it was given, and its end."""

from __future__ import annotations

from django_workqueue import task

from .diary import worker_diary
from .tasks import start


@task(takes_context=True)
def say_first(context, name):
    """Begin a result with the own name."""
    return _say(context, name, [])


@task(takes_context=True)
def say_link(context, given, name):
    """Add the own name to what was given, and note in the diary who gave it."""
    return _say(context, name, given)


def _say(context, name, given):
    start(context, " ".join([name, *_names(given)]))
    worker_diary().write("end", str(context.job_id), context.attempt, name)
    return [*given, name] if all(isinstance(each, str) for each in given) else [given, name]


def _names(given):
    """Return all names in a result."""
    return [given] if isinstance(given, str) else [name for each in given for name in _names(each)]
