"""A worker that lost its lease is refused, whatever it comes back with; and only the database's clock judges it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from django_workqueue.models import FinishedJob, Job, Lease, Queue, Worker
from django_workqueue.store import store_for

from . import tasks
from .diary import clock
from .harness import books, disguised, end_sessions, failure_kinds, freeze, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]


def holders(jobs):
    """Return the workers that hold these jobs, with the number of the attempt."""
    rows = Job.objects.filter(pk__in=[job.id for job in jobs], state="leased")
    return {(str(pk), worker, attempts) for pk, worker, attempts in rows.values_list("pk", "lease__worker", "attempts")}


def test_stale_worker_is_refused_in_complete_fail_and_renew(fleet, diary):
    """An owner that sleeps past its lease while another takes its jobs comes back and changes nothing at all."""
    done, failed = tasks.hold.enqueue("done"), tasks.hold.enqueue("failed", error="by the late owner")
    owner = fleet.start("--concurrency", "2", "--name", "owner", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 2, "both jobs to start")
    freeze(owner)
    fleet.start("--concurrency", "2", "--name", "heir", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 4, "the heir to start both jobs again")
    held = holders([done, failed])

    owner.thaw()
    owner.wait_for_log("no longer hold")
    diary.open("done-1", "failed-1")
    for job in (done, failed):
        owner.wait_for_log(f"on job {job.id} is lost: another worker holds the job (heir:")

    assert held == holders([done, failed])
    assert {(worker.partition(":")[0], attempt) for _, worker, attempt in held} == {("heir", 2)}
    assert failure_kinds(done) == failure_kinds(failed) == ["lapsed"]

    diary.open("done-2", "failed-2", "failed-3")
    wait_for_books([done], succeeded=1)

    finished = FinishedJob.objects.get()
    assert (finished.worker.partition(":")[0], finished.result) == ("heir", "2")
    wait_until(lambda: failure_kinds(failed)[:2] == ["lapsed", "error"], "the heir's own failure")
    assert owner.stop() == 0


def test_owner_that_oversleeps_alone_is_refused(fleet, diary):
    """A lease that lapsed is lost even if nobody has taken the job: the attempt that comes after it counts."""
    job = tasks.hold.enqueue()
    owner = fleet.start("--concurrency", "1", **settings(lease=2))
    wait_until(diary.starts, "the job to start")
    freeze(owner)
    wait_until(lambda: Lease.objects.filter(expires_at__lte=store_for().now()).exists(), "the lease to lapse")

    diary.open("gate-1")
    owner.thaw()
    owner.wait_for_log(f"on job {job.id} is lost")
    wait_until(lambda: len(diary.starts()) == 2, "the second attempt")
    diary.open("gate-2")
    wait_for_books([job], succeeded=1)

    assert FinishedJob.objects.get().result == "2"
    assert failure_kinds(job) == ["lapsed"]


@pytest.mark.postgresql
def test_lost_lease_is_not_taken_for_a_lost_answer(fleet, diary):
    """A worker that connects again gives back claims it never heard of, but not what it ran and was refused for."""
    owner = fleet.start("--concurrency", "1", **settings(lease=2, reap_interval=3600))
    first = tasks.record.enqueue()
    wait_for_books([first], succeeded=1)
    # Maintenance reaps before it counts, and then not for an hour: only the search for lost claims is left to go wrong.
    wait_until(Queue.objects.filter(done=1).exists, "the owner to have looked for lapsed leases")
    job = tasks.hold.enqueue()
    wait_until(lambda: diary.starts(job.id), "the job to start")
    freeze(owner)
    wait_until(lambda: Lease.objects.filter(expires_at__lte=store_for().now()).exists(), "the lease to lapse")
    diary.open("gate")
    owner.thaw()
    owner.wait_for_log(f"on job {job.id} is lost")

    end_sessions()
    owner.wait_for_log("A round of the worker failed")
    nothing = tasks.record.using(queue_name="other").enqueue()
    wait_for_books([nothing], succeeded=1)

    assert books([job]) == {"leased": 1}
    # With so short a lease, on a busy machine, another attempt of its own might lapse as well.
    assert owner.stop() == 0
    fleet.start("--concurrency", "1")
    wait_for_books([job], succeeded=1)
    assert FinishedJob.objects.get(pk=job.id).attempts == 2
    assert failure_kinds(job) == ["lapsed"]


def test_stored_lease_decides_in_a_mixed_fleet(fleet, diary):
    """Reapers judge a lease by what its owner was promised, not by their own setting, in both directions."""
    patient_job = tasks.hold.using(queue_name="patient").enqueue("patient")
    quick_job = tasks.hold.using(queue_name="quick").enqueue("quick")
    patient = fleet.start("--queues", "patient", **settings(lease=12))
    quick = fleet.start("--queues", "quick", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 2, "both jobs to start")
    frozen_at = clock()
    for worker in (patient, quick):
        freeze(worker)

    fleet.start("--queues", "quick", **settings(lease=12))
    (_, again) = wait_until(
        lambda: len(found := diary.starts(quick_job.id)) == 2 and found, "the quick job's second start"
    )

    assert 1 < again.at - frozen_at < 9

    fleet.start("--queues", "patient", "--name", "hasty", **settings(lease=1))
    # Maintenance reaps at its start; the first beat comes later.
    wait_until(lambda: Worker.objects.filter(name="hasty", seen_at__gt=F("started_at")).exists(), "a look by hasty")
    assert books([patient_job]) == {"leased": 1}
    patient.thaw()
    diary.open("patient", "quick")
    wait_for_books([patient_job, quick_job], succeeded=2)

    assert len(diary.starts(patient_job.id)) == 1
    assert failure_kinds(patient_job) == []


@pytest.mark.postgresql
def test_wrong_clocks_change_nothing(fleet, diary):
    """Workers ten minutes ahead and behind start nothing early and steal nothing (kagkarlsson/db-scheduler#433)."""
    held = tasks.hold.enqueue_many([()] * 3)
    for shift in ("clock=600", "clock=-600", "clock=0"):
        fleet.start("--concurrency", "2", program=disguised(shift), ready=False, **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 3, "the held jobs to start", seconds=40)
    due_at = clock() + 5
    due = tasks.record.using(run_after=timedelta(seconds=5)).enqueue()
    for worker in fleet.workers:
        worker.wait_until_ready()

    wait_for_books([due], succeeded=1)

    assert due_at <= diary.starts(due.id)[0].at < due_at + 2
    assert books(held) == {"leased": 3}
    diary.open("gate")
    wait_for_books(held, succeeded=3)
    assert len(diary.starts()) == 4
    assert fleet.complaints == []
