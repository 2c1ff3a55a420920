"""Workers that die without a word: nothing is lost, nothing waits for ever, and only the culprit pays."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings as django_settings

from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job
from tests.factories import JobFactory, LeaseFactory

from . import tasks
from .diary import clock
from .harness import books, failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]


def test_due_job_outlives_every_worker_that_waits_for_it(fleet, diary):
    """A job that is not due is a row and nothing else: no worker's end can touch it (celery/kombu#533)."""
    doomed = fleet.start()
    due_at = clock() + 4
    job = tasks.record.using(run_after=timedelta(seconds=4)).enqueue()
    doomed.kill()

    assert books([job]) == {"scheduled": 1}
    assert Job.objects.get().lease is None
    fleet.start()
    wait_for_books([job], succeeded=1)

    (start,) = diary.starts()
    assert start.at >= due_at
    assert failure_kinds(job) == []


def test_no_job_goes_with_its_workers(fleet, diary):
    """Every accepted job is in one place while all workers are shot, and after it (knifecake/steady-queue#44)."""
    jobs = tasks.hold.enqueue_many([()] * 50)
    doomed = fleet.start_many(2, "--concurrency", "8", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 16, "all slots to be busy")

    for worker in doomed:
        worker.kill()

    assert books(jobs) == {"leased": 16, "ready": 34}
    diary.open("gate")
    fleet.start("--concurrency", "8", **settings(lease=2))
    wait_for_books(jobs, succeeded=50)
    assert Failure.objects.filter(kind="lapsed").count() == 16


def test_job_of_a_lost_worker_starts_again_soon(fleet, diary):
    """Within lease plus one reaper round, with the attempt counted and a record that says why (django-tasks#46)."""
    job = tasks.hold.enqueue()
    doomed = fleet.start("--concurrency", "1", **settings(lease=2))
    wait_until(diary.starts, "the first attempt")
    fleet.start("--concurrency", "1", **settings(lease=2))

    killed_at = clock()
    doomed.kill()
    wait_until(lambda: len(diary.starts()) == 2, "the second attempt")
    diary.open("gate")
    wait_for_books([job], succeeded=1)

    assert diary.starts()[1].at - killed_at < 2 + 0.5 + 5
    assert [entry.attempt for entry in diary.starts()] == [1, 2]
    failure = Failure.objects.get()
    assert (failure.kind, failure.attempt) == ("lapsed", 1)
    assert failure.message.startswith("Worker lost")


def test_reaping_needs_no_slot_and_no_leader(fleet, diary):
    """With every slot busy the leases of three dead workers are taken back (procrastinate-org/procrastinate#1408)."""
    jobs = tasks.hold.enqueue_many([()] * 6)
    doomed = fleet.start_many(3, "--concurrency", "2", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 6, "the doomed to be busy")
    busy = tasks.hold.using(priority=1).enqueue_many([()] * 2)
    fleet.start("--concurrency", "2", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 8, "the survivor to be busy")

    for worker in doomed:
        worker.kill()
    wait_for_books(jobs, ready=6)

    assert books(busy) == {"leased": 2}
    diary.open("gate")
    wait_for_books([*jobs, *busy], succeeded=8)


def test_dead_leases_take_no_slots(fleet, diary):
    """Free slots are the live process's own affair (django-background-tasks#151)."""
    for _ in range(4):
        lease = LeaseFactory(worker="gone:1:dead")
        JobFactory(
            task="tests.acceptance.tasks.record", args="[]", kwargs="{}", state="leased", lease=lease, attempts=1
        )
    jobs = tasks.hold.enqueue_many([()] * 4)

    fleet.start("--concurrency", "4", **settings(lease=30))
    wait_until(lambda: len(diary.starts()) == 4, "all four slots to work", seconds=5)

    diary.open("gate")
    wait_for_books(jobs, succeeded=4)
    assert Job.objects.filter(state="leased", lease__worker="gone:1:dead").count() == 4


def test_poison_job_pays_for_its_kills_and_its_neighbours_do_not(fleet, diary):
    """A job that kills its worker has three starts and is dead; the pool goes on (celery/celery#8610)."""
    # Short jobs come first, so that the worker takes the poison and its neighbours in one batch.
    short = tasks.record.using(priority=2).enqueue_many([()] * 100)
    poison = tasks.kill_own_worker.using(priority=1, max_attempts=3).enqueue()
    neighbours = tasks.record.using(max_attempts=1).enqueue_many([()] * 20)

    def all_settled() -> bool:
        if not fleet.workers or fleet.workers[-1].exit_code is not None:
            fleet.start("--concurrency", "1", ready=False, **settings(lease=2))
        return not Job.objects.exists()

    wait_until(all_settled, "every job to end", seconds=60)

    assert [entry.attempt for entry in diary.starts(poison.id)] == [1, 2, 3]
    assert books([poison]) == {"exhausted": 1}
    assert books([*short, *neighbours]) == {"succeeded": 120}
    assert failure_kinds(poison) == ["lapsed"] * 3
    assert DeadLetter.objects.get().last_error.startswith("lapsed: Worker lost")
    assert [worker.exit_code for worker in fleet.workers[:3]] == [-signal.SIGKILL] * 3
    assert len(fleet.workers) <= 4


def test_job_longer_than_its_lease_starts_once(fleet, diary):
    """A lease lives as long as its process, so that the length of jobs is no concern (Koed00/django-q#183)."""
    job = tasks.nap.enqueue(5)

    fleet.start_many(3, "--concurrency", "2", **settings(lease=1.5))
    wait_for_books([job], succeeded=1)

    assert len(diary.starts()) == 1
    assert fleet.complaints == []
    assert FinishedJob.objects.get().attempts == 1


def test_books_balance_after_random_kills(process_environment):
    """Whatever is killed whenever, each attempt has one ending on record, and no job has two."""
    done = subprocess.run(
        [sys.executable, "-m", "testproject.benchmarks.survival", *SURVIVAL[django_settings.TEST_DB]],
        env=process_environment,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr


SURVIVAL = {
    "postgresql": (
        "--jobs",
        "400",
        "--workers",
        "3",
        "--kills",
        "6",
        "--freezes",
        "2",
        "--cuts",
        "4",
        "--restarts",
        "2",
    ),
    "sqlite": ("--database", "sqlite", "--jobs", "400", "--workers", "3", "--kills", "6", "--freezes", "2"),
}
