"""Ending what runs: timeouts, cancels, and what a running job says of itself, with real workers."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from django_workqueue.lifecycle import operate
from django_workqueue.models import Failure, FinishedJob, Job, Worker

from . import tasks
from .harness import books, failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]

LONG = 300
"""Seconds that nothing here takes: whoever sleeps for so long is ended."""


# -- timeouts ----------------------------------------------------------------------------------------------------------


def test_native_sleep_past_its_timeout_frees_its_slot_and_harms_nobody(fleet, diary):
    """
    The job is recorded as timed out, its worker starts over, and jobs beside it end as if nothing had been.

    The one slot that it held serves the next job; no attempt of it begins while its thread is there (rq/rq#323,
    django-q2/django-q2#173, timgit/pg-boss#555).
    """
    beside = tasks.hold.enqueue()
    stuck = tasks.sleep_deaf_too_long.using(max_attempts=2).enqueue(LONG)
    worker = fleet.start("--concurrency", "2", **settings(timeout_grace=0.5, lease=3))
    wait_until(lambda: len(diary.starts()) == 2, "both jobs to start")
    first = Worker.objects.get().pk

    worker.wait_for_log(f"Job {stuck.id} of tests.acceptance.tasks.sleep_deaf_too_long does not end")
    wait_until(lambda: Worker.objects.filter(state="stopping").exists(), "the worker to drain")
    assert books([stuck, beside]) == {"leased": 2}
    waiting = tasks.record.enqueue()
    diary.open("gate")

    wait_for_books([beside], succeeded=1)
    wait_for_books([waiting], succeeded=1)
    wait_for_books([stuck], exhausted=1)
    assert failure_kinds(beside) == []
    assert failure_kinds(stuck) == ["timeout", "timeout"]
    assert "in sleep_deaf" in Failure.objects.filter(job_id=stuck.id).first().traceback
    assert diary.entries("end", stuck.id) == []
    assert not Worker.objects.filter(pk=first).exists()
    assert worker.exit_code is None
    assert worker.stop() == 0


def test_native_sleep_is_recorded_and_its_slot_is_free_in_time(fleet, diary):
    """A limit of a second and the grace that is the default: soon afterwards the only slot runs the next job."""
    stuck = tasks.sleep_deaf_too_long.using(max_attempts=1).enqueue(LONG)
    fleet.start("--concurrency", "1")
    [begun] = wait_until(lambda: diary.starts(stuck.id), "the stuck job to start")
    following = tasks.record.enqueue()

    wait_for_books([stuck, following], exhausted=1, succeeded=1)

    # On a busy machine it was recorded after 3.0 s, and the next job began after 4.7 s.
    assert diary.starts(following.id)[0].at - begun.at < 20
    failure = Failure.objects.get()
    assert failure.kind == "timeout"
    assert 2 <= (failure.failed_at - failure.started_at).total_seconds() < 15


def test_stop_does_not_wait_for_what_cannot_end(fleet, diary):
    """The job is recorded as timed out, not as interrupted, and the worker leaves as asked, with code 0."""
    stuck = tasks.sleep_deaf_too_long.enqueue(LONG)
    holding = tasks.hold.enqueue()
    worker = fleet.start("--concurrency", "2", "--shutdown-timeout", "60", **settings(timeout_grace=0.3))
    wait_until(lambda: len(diary.starts()) == 2, "both jobs to start")
    worker.wait_for_log("does not end")
    worker.signal(15)
    diary.open("gate")

    assert worker.wait() == 0
    assert failure_kinds(stuck) == ["timeout"]
    assert books([stuck, holding]) == {"scheduled": 1, "succeeded": 1}


def test_stuck_process_below_a_supervisor_is_replaced(fleet, diary):
    """It leaves, and another takes its place; the supervisor goes on, and takes it for no crash."""
    stuck = tasks.sleep_deaf_too_long.using(max_attempts=1).enqueue(LONG)
    supervisor = fleet.start("--processes", "2", "--concurrency", "1", **settings(timeout_grace=0.5))
    wait_until(lambda: diary.starts(stuck.id), "the stuck job to start")

    wait_for_books([stuck], exhausted=1)
    assert failure_kinds(stuck) == ["timeout"]
    wait_until(lambda: Worker.objects.filter(state="running").count() == 2, "both processes to serve")
    held = tasks.hold.enqueue_many([()] * 2)
    wait_for_books(held, leased=2)
    diary.open("gate")
    wait_for_books(held, succeeded=2)
    assert supervisor.stop() == 0


def test_loop_past_its_timeout_is_ended_and_its_slot_stays(fleet, diary):
    """Pure Python is ended in its thread; the worker goes on, and retries it."""
    job = tasks.compute_too_long.using(max_attempts=2).enqueue()
    worker = fleet.start("--concurrency", "1")

    wait_for_books([job], exhausted=1)

    assert failure_kinds(job) == ["timeout", "timeout"]
    assert "in compute_too_long" in Failure.objects.first().traceback
    one, two = (entry.at for entry in diary.starts(job.id))
    assert two - one >= 1
    following = tasks.record.enqueue()
    wait_for_books([following], succeeded=1)
    assert "starts over" not in worker.log


def test_timeout_of_the_queue_holds_for_tasks_without_their_own(fleet, diary):
    """By the settings."""
    job = tasks.wait_until_cancelled.using(max_attempts=1).enqueue()
    fleet.start("--concurrency", "1", **settings(timeout=1))

    wait_for_books([job], exhausted=1)

    assert failure_kinds(job) == ["timeout"]
    assert len(diary.entries("heard", job.id)) == 1


# -- cancelling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("long", [tasks.loop_until_cancelled, tasks.wait_until_cancelled], ids=["thread", "coroutine"])
@pytest.mark.parametrize("listen", [True, False], ids=["hears", "looks"])
def test_running_job_is_cancelled(fleet, diary, long, listen):
    """It hears of it by a notification or within about a second, cleans up and is over; no attempt follows."""
    job = long.enqueue()
    fleet.start("--concurrency", "1", *([] if listen else ["--no-listen"]))
    wait_until(lambda: diary.starts(job.id), "the job to start")

    assert [str(pk) for pk in operate.cancel([job.id]).requested] == [job.id]
    wait_for_books([job], cancelled=1)

    assert len(diary.entries("heard", job.id)) == 1
    assert failure_kinds(job) == []
    assert FinishedJob.objects.get().worker
    following = tasks.record.enqueue()
    wait_for_books([following], succeeded=1)
    assert len(diary.starts(job.id)) == 1


@pytest.mark.parametrize(("deaf", "args"), [(tasks.sleep_deaf, [LONG]), (tasks.hold, [])], ids=["native", "python"])
def test_job_that_does_not_listen_is_cancelled_by_force(fleet, diary, deaf, args):
    """As if its time were over: in the end the worker starts over."""
    job = deaf.enqueue(*args)
    fleet.start("--concurrency", "1", **settings(timeout_grace=0.3))
    wait_until(lambda: diary.starts(job.id), "the job to start")

    operate.cancel([job.id], force=True)
    wait_for_books([job], cancelled=1)

    following = tasks.record.enqueue()
    wait_for_books([following], succeeded=1)
    assert len(diary.starts(job.id)) == 1


def test_request_outlives_the_worker_that_heard_it(fleet, diary):
    """Killed before it could end the job, it leaves a job that is cancelled and not run again."""
    job = tasks.hold.enqueue()
    worker = fleet.start("--concurrency", "1", **settings(lease=2))
    wait_until(lambda: diary.starts(job.id), "the job to start")
    operate.cancel([job.id])
    worker.kill()
    fleet.start("--concurrency", "1", **settings(lease=2))

    wait_for_books([job], cancelled=1)

    assert failure_kinds(job) == ["lapsed"]
    assert len(diary.starts(job.id)) == 1


# -- what a running job says -------------------------------------------------------------------------------------------


@pytest.mark.postgresql
def test_progress_and_heartbeat_pass_an_open_transaction(fleet, diary):
    """They are seen while what the job itself has written is not."""
    job = tasks.report_inside_transaction.enqueue()
    fleet.start("--concurrency", "1", **settings(lease=6))

    wait_until(lambda: Job.objects.filter(pk=job.id, progress__isnull=False).exists(), "the progress")

    assert Job.objects.get().progress == '{"done":3,"total":10,"text":"rows"}'
    assert not Group.objects.exists()
    lease = Job.objects.get().lease
    wait_until(lambda: type(lease).objects.get().renewed_at > lease.acquired_at, "the renewal")
    diary.open("gate")
    wait_for_books([job], succeeded=1)
    assert Group.objects.count() == 1
