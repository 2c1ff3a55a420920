"""A worker under a stable name: its successor takes its jobs back at once, and a living one keeps them."""

from __future__ import annotations

import pytest

from django_workqueue.models import Failure, Worker

from . import tasks
from .harness import books, failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]

LONG = settings(lease=600)


def test_successor_takes_back_at_once_what_the_dead_held(fleet, diary):
    """Not ten minutes later, when the leases lapse; jobs of other workers stay where they are."""
    others = tasks.hold.enqueue_many([()] * 2)
    fleet.start("--concurrency", "2", "--name", "other", **LONG)
    wait_until(lambda: len(diary.starts()) == 2, "the other to be busy")
    jobs = tasks.hold.enqueue_many([()] * 3)
    doomed = fleet.start("--concurrency", "3", "--name", "web1", **LONG)
    wait_until(lambda: len(diary.starts()) == 5, "the doomed to be busy")

    doomed.kill()
    assert books(jobs) == {"leased": 3}
    successor = fleet.start("--concurrency", "3", "--name", "web1", **LONG)
    wait_until(lambda: len(diary.starts()) == 8, "the second attempts")

    assert "Adopted 3 jobs from web1:" in successor.log
    assert sorted(Worker.objects.values_list("name", flat=True)) == ["other", "web1"]
    diary.open("gate")
    wait_for_books([*jobs, *others], succeeded=5)
    assert [failure_kinds(job) for job in jobs] == [["adopted"]] * 3
    assert Failure.objects.count() == 3


def test_second_process_of_a_name_is_refused(fleet, diary):
    """With its own exit code; the first one keeps its jobs and goes on."""
    job = tasks.hold.enqueue()
    first = fleet.start("--concurrency", "1", "--name", "web1", **LONG)
    wait_until(diary.starts, "the job to start")

    second = fleet.start("--name", "web1", ready=False, **LONG)

    assert second.wait(40) == 2
    row = Worker.objects.get()
    assert f"belongs to a living worker: host {row.host}, pid {first.pid}, last seen" in second.log
    diary.open("gate")
    wait_for_books([job], succeeded=1)
    assert first.stop() == 0
    assert failure_kinds(job) == []


def test_worker_without_a_name_adopts_nothing(fleet, diary):
    """Its host and process id are no promise: the leases have to lapse."""
    job = tasks.hold.enqueue()
    doomed = fleet.start("--concurrency", "1", **LONG)
    wait_until(diary.starts, "the job to start")
    doomed.kill()

    fleet.start("--concurrency", "1", **LONG)

    assert books([job]) == {"leased": 1}
