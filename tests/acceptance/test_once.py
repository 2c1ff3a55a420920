"""The crash injector: the effect is done and the worker dies before that is recorded, or before it can be."""

from __future__ import annotations

import signal

import pytest

from django_workqueue.lifecycle import operate
from django_workqueue.models import FinishedJob, Job, Step

from . import tasks
from .harness import failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]


def run_until(fleet, ended):
    """Replace each worker that dies, until ``ended``."""

    def look():
        if not fleet.workers or fleet.workers[-1].exit_code is not None:
            fleet.start("--concurrency", "1", ready=False, **settings(lease=2))
        return ended()

    wait_until(look, "the job to end", seconds=90)


@pytest.mark.parametrize("name", ["charge_once", "charge_once_async"])
def test_two_deaths_after_the_effect_leave_one_effect(fleet, diary, name):
    """The third delivery succeeds, with the receipt of the first."""
    job = getattr(tasks, name).enqueue(2)

    run_until(fleet, lambda: not Job.objects.exists())

    assert [worker.exit_code for worker in fleet.workers[:2]] == [-signal.SIGKILL] * 2
    assert [entry.attempt for entry in diary.starts()] == [1, 2, 3]
    assert len(diary.entries("charge")) == 1
    assert FinishedJob.objects.get().result == '"receipt 5"'
    assert Step.objects.count() == 1
    assert failure_kinds(job) == ["lapsed"] * 2


def test_death_inside_a_step_is_a_persons_to_decide(fleet, diary):
    """It is not done again by itself; told what happened, the job succeeds without a second effect."""
    job = tasks.charge_in_doubt.enqueue()
    run_until(fleet, lambda: not Job.objects.exists())
    wait_for_books([job], rejected=1)
    assert failure_kinds(job) == ["lapsed", "rejected"]

    step = Step.objects.get()
    operate.resolve_step(step.job_id, "charge", happened=True, outcome="receipt 17")
    operate.requeue([step.job_id])
    wait_for_books([job], succeeded=1)

    assert len(diary.entries("charge")) == 1
    assert FinishedJob.objects.get().result == '"receipt 17"'
