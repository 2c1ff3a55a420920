"""Two releases of one module: what the workers and the web processes of a rollout import, each its own."""

from __future__ import annotations

from pathlib import Path

#: What both releases have: a web process that stores jobs until it is told to stop, and a job that takes its time.
COMMON = """
import time
from django_workqueue import task
from tests.acceptance.diary import worker_diary

def start(context, note):
    worker_diary().write("start", str(context.job_id), context.attempt, f"{RELEASE} {note}")

@task(takes_context=True)
def take_long(context):
    start(context, "take_long")
    worker_diary().pass_gate("long", context.attempt)

def serve():
    while not worker_diary().is_open(f"no-more-{RELEASE}"):
        for result in place_order():
            worker_diary().write("enqueued", str(result.id), 0, RELEASE)
        time.sleep(0.05)
"""

OLD = """
RELEASE = "old"

@task(takes_context=True)
def greet(context, name):
    start(context, "greet")

def place_order():
    return [greet.enqueue("Ada")]
"""

#: It has a parameter more, with a default, and a task more.
NEW = """
RELEASE = "new"

@task(takes_context=True)
def greet(context, name, greeting="Hello"):
    start(context, "greet")

@task(takes_context=True)
def wave(context):
    start(context, "wave")

def place_order():
    return [greet.enqueue("Ada", greeting="Good day"), wave.enqueue()]
"""

MODULE = "shop_release"
WEB = ("-c", f"import django; django.setup(); import {MODULE}; print('up', flush=True); {MODULE}.serve()")


def write(folder: Path) -> dict[str, Path]:
    """Write both releases below ``folder`` and return the path that each is imported from."""
    places = {}
    for name, text in (("old", OLD), ("new", NEW)):
        places[name] = folder / name
        places[name].mkdir()
        (places[name] / f"{MODULE}.py").write_text(COMMON + text)
    return places
