"""Atomic tasks: whatever becomes of worker, lease and connection, the effects on the database happen exactly once."""

from __future__ import annotations

import signal

import pytest
from django.contrib.auth.models import Group
from django.db.models import F

from django_workqueue.models import FinishedJob, Job, Lease, Worker
from django_workqueue.store import store_for

from . import tasks
from .harness import books, disguised, failure_kinds, freeze, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]

COMPLETE = (b"gone AS (", b"COMMIT")


def effects() -> tuple[list[str], list[str]]:
    """Return what attempts wrote: rows of the project, and jobs that followed."""
    follow = {}
    # Live ones first, and each once: a job that ends between the two looks is seen by both.
    for model in (Job, FinishedJob):
        follow |= dict(model.objects.filter(task=tasks.record.module_path).values_list("pk", "args"))
    return sorted(Group.objects.values_list("name", flat=True)), sorted(follow.values())


def only(attempt: int) -> tuple[list[str], list[str]]:
    """Return the effects of this one attempt."""
    return [f"attempt {attempt}"], [f'["after attempt {attempt}"]']


def test_death_before_the_end_of_the_body_leaves_nothing(fleet, diary):
    """The next attempt finds the database as the first one found it."""
    job = tasks.add_group.enqueue("gate")
    doomed = fleet.start("--concurrency", "1", **settings(lease=5))
    wait_until(diary.starts, "the first attempt")
    doomed.kill()
    assert effects() == ([], [])

    diary.open("gate")
    fleet.start("--concurrency", "1", **settings(lease=5))
    wait_for_books([job], succeeded=1)

    assert effects() == only(2)
    assert failure_kinds(job) == ["lapsed"]


def test_death_between_body_and_commit_leaves_nothing(fleet, diary):
    """Also where the success was recorded already, in the transaction that died."""
    job = tasks.add_group.enqueue()
    doomed = fleet.start("--concurrency", "1", program=disguised("die-before-commit"), **settings(lease=2))
    assert doomed.wait() == -signal.SIGKILL
    assert effects() == ([], [])
    assert books([job]) == {"leased": 1}

    fleet.start("--concurrency", "1", **settings(lease=2))
    wait_for_books([job], succeeded=1)

    assert effects() == only(2)


def test_attempt_that_lost_its_lease_leaves_nothing(fleet, diary):
    """It oversleeps, another attempt counts, and what it wrote is rolled back."""
    job = tasks.add_group.enqueue("gate")
    owner = fleet.start("--concurrency", "1", **settings(lease=2, reap_interval=600))
    wait_until(diary.starts, "the first attempt")
    # Not by freeze(): on SQLite this body holds the lock that it waits for, and nobody else writes meanwhile.
    owner.freeze()
    wait_until(lambda: Lease.objects.filter(expires_at__lte=store_for().now()).exists(), "the lease to lapse")
    diary.open("gate-1")
    owner.thaw()
    owner.wait_for_log(f"on job {job.id} is lost")
    assert effects() == ([], [])

    diary.open("gate")
    fleet.start("--concurrency", "1", **settings(lease=2))
    wait_for_books([job], succeeded=1)

    assert effects() == only(2)
    assert failure_kinds(job) == ["lapsed"]


@pytest.mark.postgresql
def test_attempt_whose_job_another_took_leaves_nothing(fleet, diary):
    """Both bodies run at the same time; one of the two transactions commits."""
    job = tasks.add_group.enqueue("gate")
    owner = fleet.start("--concurrency", "1", "--name", "owner", **settings(lease=2))
    wait_until(diary.starts, "the first attempt")
    freeze(owner)
    fleet.start("--concurrency", "1", "--name", "heir", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 2, "the second attempt")

    diary.open("gate-1")
    owner.thaw()
    owner.wait_for_log(f"on job {job.id} is lost: another worker holds the job (heir:")
    assert effects() == ([], [])
    diary.open("gate-2")
    wait_for_books([job], succeeded=1)

    assert effects() == only(2)


@pytest.mark.postgresql
def test_body_that_is_longer_than_its_lease_keeps_it(fleet, diary):
    """The heartbeat is not held up by the open transaction."""
    job = tasks.add_group.enqueue("gate")
    fleet.start("--concurrency", "1", **settings(lease=2))
    wait_until(diary.starts, "the attempt")
    renewed = Lease.objects.get().expires_at
    wait_until(lambda: Lease.objects.filter(acquired_at__lt=F("renewed_at")).exists(), "a renewal")
    wait_until(lambda: store_for().now() > renewed, "the time at which the lease would have lapsed")

    diary.open("gate")
    wait_for_books([job], succeeded=1)

    assert effects() == only(1)
    assert fleet.complaints == []


@pytest.mark.postgresql
@pytest.mark.parametrize("retention", [60, 0])
def test_commit_whose_answer_is_lost_counts_once(fleet, diary, proxy, retention):
    """It is neither repeated nor called lost, whether a row of the job is kept or not."""
    worker = fleet.start("--concurrency", "1", **settings(lease=60, heartbeat=1, retention=retention))
    proxy.lose_reply(*COMPLETE)
    job = tasks.add_group.enqueue()
    assert proxy.lost.wait(20)

    wait_until(lambda: not Job.objects.exists() and not Lease.objects.exists(), "both jobs to end", seconds=20)
    wait_until(lambda: Worker.objects.get().done == 2, "both to be counted", seconds=40)

    assert [entry.attempt for entry in diary.starts(job.id)] == [1]
    assert Group.objects.get().name == "attempt 1"
    assert [entry.note for entry in diary.starts()] == ["", "after attempt 1"]
    assert failure_kinds(job) == []
    assert "is lost" not in worker.log
    assert "gave no answer" in worker.log
