"""Stopping a worker: what runs may end, what cannot goes back at once, and nobody has to clean up after it."""

from __future__ import annotations

import signal

import pytest

from django_workqueue.models import FinishedJob, Job, Lease, Worker

from . import tasks
from .diary import clock
from .harness import books, failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]


def test_stop_lets_running_jobs_end_under_their_lease(fleet, diary):
    """However much longer than a lease they take; what waits is untouched; exit code 0 (timgit/pg-boss#102)."""
    running = tasks.hold.using(priority=1).enqueue_many([()] * 4)
    waiting = tasks.record.enqueue_many([()] * 3)
    worker = fleet.start("--concurrency", "4", "--shutdown-timeout", "30", **settings(lease=1.5))
    wait_until(lambda: len(diary.starts()) == 4, "the slots to be full")
    first_expiry = max(Lease.objects.values_list("expires_at", flat=True))

    worker.signal(signal.SIGTERM)
    wait_until(lambda: Worker.objects.filter(state="stopping").exists(), "the worker to say that it stops")
    wait_until(lambda: Lease.objects.filter(renewed_at__gt=first_expiry).count() == 4, "renewals past the first lease")
    diary.open("gate")

    assert worker.wait() == 0
    assert books(running) == {"succeeded": 4}
    assert books(waiting) == {"ready": 3}
    assert not Job.objects.exclude(attempts=0).exists()
    assert not Worker.objects.exists()
    assert worker.complaints == []


@pytest.mark.parametrize("long", [tasks.hold, tasks.hold_async], ids=["thread", "coroutine"])
def test_job_that_outlasts_the_grace_time_goes_back_at_once(fleet, diary, long):
    """Deploy after deploy interrupts it, no attempt is charged, and at last it succeeds (sidekiq/sidekiq#293)."""
    job = long.using(max_attempts=1).enqueue()

    for deploy in range(1, 4):
        worker = fleet.start("--concurrency", "1", "--shutdown-timeout", "0.5")
        wait_until(lambda count=deploy: len(diary.starts()) == count, "the job to start")
        stopped_at = clock()
        assert worker.stop() == 0
        assert clock() - stopped_at < 10
        assert books([job]) == {"ready": 1}
        assert not Lease.objects.exists()

    diary.open("gate")
    fleet.start("--concurrency", "1")
    wait_for_books([job], succeeded=1)
    assert failure_kinds(job) == ["interrupted"] * 3
    assert (FinishedJob.objects.get().attempts, FinishedJob.objects.get().interruptions) == (1, 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_ends_the_worker_now(fleet, diary, number):
    """An impatient operator loses no job: it waits again at once, and runs again (procrastinate PR#366)."""
    job = tasks.hold.enqueue()
    worker = fleet.start("--concurrency", "1", "--shutdown-timeout", "60")
    wait_until(diary.starts, "the job to start")

    worker.signal(number)
    wait_until(lambda: Worker.objects.filter(state="stopping").exists(), "the worker to say that it stops")
    signalled_at = clock()
    worker.signal(number)
    worker.wait()

    assert clock() - signalled_at < 10
    assert books([job]) == {"ready": 1}
    diary.open("gate")
    fleet.start("--concurrency", "1")
    wait_for_books([job], succeeded=1)
    assert failure_kinds(job) == ["interrupted"]
