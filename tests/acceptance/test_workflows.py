"""
Workflows on workers that die: every member ends, each link after the one before, and each body once.

``WORKQUEUE_SIEGE=full`` takes many more workflows and kills: minutes rather than seconds.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict

import pytest
from django.conf import settings as django_settings

from django_workqueue import chain, chord, group
from django_workqueue.models import DeadLetter, Job, Workflow, WorkflowMember

from . import workflow_tasks as tasks
from .harness import disguised, settings, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(1200)]

#: Chains of four, chords, members of each chord, nested workflows, and kills.
SIEGES = {
    "full": (200, 20, 100, 5, 20),
    "postgresql": (30, 3, 25, 2, 4),
    "sqlite": (8, 2, 8, 1, 2),
}
PATIENCE = {"lease": 2, "max_attempts": 50, "backoff": 0.1}


def link(name):
    """Return a member that says its name and what it was given."""
    return tasks.say_link.signature(name).using(max_attempts=50)


def first(name):
    """Return a member without anything before it."""
    return tasks.say_first.signature(name).using(max_attempts=50)


def four_links(name):
    """Return a chain of four."""
    return chain(first(f"{name}.1"), link(f"{name}.2"), link(f"{name}.3"), link(f"{name}.4"))


def crowd(name, size):
    """Return a chord."""
    return chord([first(f"{name}.{number}") for number in range(size)], link(f"{name}.body"))


def nest(name, size):
    """Return chains in a group in a chain, with chords inside."""
    inner = [chain(crowd(f"{name}.{number}", size // 2), link(f"{name}.{number}.after")) for number in range(3)]
    return chain(group(*inner, group(), four_links(f"{name}.row")), link(f"{name}.body"), link(f"{name}.end"))


def wait_for_starts(diary, count):
    """Wait until the diary has so many starts, or until there is nothing more to start."""
    wait_until(lambda: len(diary.starts()) >= count or not Job.objects.exists(), "progress", seconds=120)


def kill_some(fleet, diary, kills, seed):
    """Kill a worker whenever some jobs more have begun, and start another in its place."""
    draw = random.Random(seed)
    for _ in range(kills):
        begun = len(diary.starts()) + draw.randint(5, 40)
        wait_until(
            lambda begun=begun: len(diary.starts()) >= begun or not Job.objects.exists(), "progress", seconds=120
        )
        alive = [worker for worker in fleet.workers if worker.exit_code is None]
        draw.choice(alive).kill()
        fleet.start("--concurrency", "4", ready=False, **settings(**PATIENCE))


def test_every_body_runs_once_and_in_order_under_kills(fleet, diary):
    """Nothing is lost between two links, nothing is left open, and no body is early (celery/celery#9835)."""
    siege = "full" if os.environ.get("WORKQUEUE_SIEGE") == "full" else django_settings.TEST_DB
    chains, chords, size, nested, kills = SIEGES[siege]
    handles = [four_links(f"chain{number}").enqueue() for number in range(chains)]
    handles += [crowd(f"chord{number}", size).enqueue() for number in range(chords)]
    handles += [nest(f"nest{number}", size).enqueue() for number in range(nested)]
    tasks_in_all = sum(handle.size for handle in handles)

    fleet.start_many(2, "--concurrency", "4", **settings(**PATIENCE))
    kill_some(fleet, diary, kills, seed=siege)
    wait_until(lambda: not Workflow.objects.filter(state="running").exists(), "all workflows to end", seconds=600)

    assert set(Workflow.objects.values_list("state", flat=True)) == {"succeeded"}
    assert set(WorkflowMember.objects.values_list("state", flat=True)) == {"done"}
    assert not DeadLetter.objects.exists()
    wait_until(lambda: not Job.objects.exists(), "the queue to be empty")
    for handle in handles:
        handle.refresh()
        assert handle.done == handle.size
    assert_results(handles, chains, chords, size)
    assert_order(diary, tasks_in_all)


def assert_results(handles, chains, chords, size):
    """Each workflow has the result of a run without kills."""
    for number, handle in enumerate(handles[:chains]):
        assert handle.result == [f"chain{number}.{place}" for place in (1, 2, 3, 4)]
    for number, handle in enumerate(handles[chains : chains + chords]):
        members = [[f"chord{number}.{place}"] for place in range(size)]
        assert handle.result == [members, f"chord{number}.body"]
    for handle in handles[chains + chords :]:
        assert handle.result[-1].endswith(".end")


def assert_order(diary, tasks_in_all):
    """Every member ran under one id, and began only after all that it was given had ended."""
    ended = {}
    for entry in diary.entries("end"):
        ended.setdefault(entry.note, entry.at)
    jobs = defaultdict(set)
    for entry in diary.starts():
        name, *given = entry.note.split(" ")
        jobs[name].add(entry.job)
        assert all(ended[before] < entry.at for before in given)
    assert len(jobs) == tasks_in_all
    assert {len(ids) for ids in jobs.values()} == {1}


def test_kill_before_any_statement_of_a_settlement_loses_nothing(fleet, diary):
    """A real worker dies at each step of noting a link's end and of starting the next, and after the commit."""
    handles, doomed = [], []
    for statement in range(1, 40):
        handles.append(chain(first(f"{statement}.1"), link(f"{statement}.2")).enqueue())
        program = disguised(f"plug={statement}")
        doomed.append(fleet.start("--concurrency", "1", "--max-jobs", "1", program=program, **settings(**PATIENCE)))
        doomed[-1].wait(60)
        if doomed[-1].exit_code == 0:
            break

    fleet.start("--concurrency", "2", **settings(**PATIENCE))
    wait_until(lambda: not Workflow.objects.filter(state="running").exists(), "all workflows to end", seconds=120)

    assert len(doomed) > 5
    for number, handle in enumerate(handles, 1):
        handle.refresh()
        assert handle.result == [f"{number}.1", f"{number}.2"]
    assert_order(diary, 2 * len(handles))
