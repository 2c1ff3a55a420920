"""Many workers on one queue: every job once, and nobody gets in another's way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from django_workqueue.models import FinishedJob, Job, Worker

from . import tasks
from .diary import clock
from .harness import disguised, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]


def test_eight_workers_run_each_job_once(fleet, diary):
    """Contention is no event: no job runs twice, and no worker has anything to say (knifecake/steady-queue#25)."""
    jobs = tasks.record.enqueue_many([()] * 2000)

    fleet.start_many(8, "--concurrency", "2", **settings(lease=30))
    wait_for_books(jobs, succeeded=2000, seconds=90)

    assert sorted(entry.job for entry in diary.starts()) == sorted(job.id for job in jobs)
    assert len({entry.worker for entry in diary.starts()}) > 1
    assert [worker.stop() for worker in fleet.workers] == [0] * 8
    assert fleet.complaints == []


def test_twins_are_two_workers(fleet, diary):
    """Containers that share host name and process id are told apart all the same (postalserver/postal#3627)."""
    held = tasks.hold.using(priority=1).enqueue_many([()] * 2)
    for _ in range(2):
        fleet.start("--concurrency", "1", program=disguised("twin"), ready=False)
    wait_until(lambda: len(diary.starts()) == 2, "each twin to hold a job", seconds=40)

    twins = Worker.objects.filter(host="container", pid=1)
    assert len({twin.id for twin in twins}) == 2
    diary.open("gate")
    jobs = tasks.record.enqueue_many([()] * 200)
    wait_for_books([*held, *jobs], succeeded=202)
    assert len(diary.starts()) == 202
    assert fleet.complaints == []


def test_full_worker_leaves_work_to_others(fleet, diary):
    """With all its slots taken by long jobs a worker holds nothing that others could run (celery/celery#6500)."""
    full = fleet.start("--concurrency", "2", **settings(lease=30))
    tasks.hold.enqueue_many([()] * 2)
    wait_until(lambda: len(diary.starts()) == 2, "the first worker to be full")
    fleet.start("--concurrency", "2", **settings(lease=30))

    enqueued_at = clock()
    short = tasks.record.enqueue_many([()] * 10)
    wait_for_books(short, succeeded=10)

    assert clock() - enqueued_at < 15
    assert {entry.worker for job in short for entry in diary.starts(job.id)} == {"worker-2"}
    assert full.exit_code is None
    diary.open("gate")


def test_misjudged_worker_gives_back_what_it_cannot_start(fleet, diary):
    """Jobs claimed ahead, because those before were short, come back within moments when a long one blocks the slot."""
    first = fleet.start("--concurrency", "1", **settings(lease=30))
    wait_for_books(tasks.record.enqueue_many([()] * 200), succeeded=200)
    short = [tasks.hold.using(priority=1).enqueue(), *tasks.record.enqueue_many([()] * 30)][1:]
    wait_until(lambda: diary.starts()[-1].worker == first.name and len(diary.starts()) == 201, "the slot to be blocked")

    fleet.start("--concurrency", "1", **settings(lease=30))
    wait_for_books(short, succeeded=30, seconds=15)

    assert FinishedJob.objects.exclude(attempts=1).count() == 0
    diary.open("gate")


@pytest.mark.parametrize("options", [(), ("--strict-order",)])
def test_queues_are_served_in_the_documented_order(fleet, diary, options):
    """Listed queues, patterns too, take turns; in strict order each waits for those before (rails/solid_queue#360)."""
    for queue in ("low", "default", "urgent-mail", "ignored"):
        tasks.nap.using(queue_name=queue).enqueue_many([(0.005, queue)] * 40)

    fleet.start("--concurrency", "1", "--queues", "urgent*,default,lo?", *options, **settings(lease=30))
    wait_until(lambda: len(diary.starts()) == 120, "three queues to be served")

    order = [entry.note for entry in diary.starts()]
    if options:
        assert order == ["urgent-mail"] * 40 + ["default"] * 40 + ["low"] * 40
    else:
        assert set(order[:60]) == {"urgent-mail", "default", "low"}
    assert Job.objects.filter(queue="ignored").count() == 40


def test_workers_and_writers_share_one_database(fleet, diary):
    """Enqueueing and running at the same time, nobody is told that the database is locked (django-q2/django-q2#144)."""
    fleet.start_many(4, "--concurrency", "2", **settings(lease=30))

    def write(_number):
        try:
            return [tasks.record.enqueue() for _ in range(500)]
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as writers:
        jobs = [job for written in writers.map(write, range(2)) for job in written]
    wait_for_books(jobs, succeeded=1000, seconds=60)

    assert len(diary.starts()) == 1000
    assert fleet.complaints == []
