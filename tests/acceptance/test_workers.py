"""Workers that are asked through the database: quiet, back to work, stop; and one that is forgotten."""

from __future__ import annotations

import pytest
from django.test import override_settings

from django_workqueue.exceptions import WorkerRequestError
from django_workqueue.lifecycle import operate
from django_workqueue.models import Job, Lease, Worker

from . import tasks
from .harness import books, failure_kinds, freeze, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]


def state_is(state: str):
    """Return whether the one worker says that it is in ``state``."""
    return lambda: list(Worker.objects.values_list("state", flat=True)) == [state]


def test_quiet_worker_finishes_what_it_has_and_claims_nothing_more(fleet, diary):
    """Until it is resumed; then it goes on as if nothing had been."""
    running = tasks.hold.using(priority=1).enqueue()
    worker = fleet.start("--concurrency", "2", **settings(lease=3))
    wait_until(diary.starts, "the job to start")

    operate.ask_worker(Worker.objects.get().name, "quiet", by="olga")
    wait_until(state_is("quiet"), "the worker to be quiet")
    waiting = tasks.record.enqueue_many([()] * 3)
    diary.open("gate")
    wait_for_books([running], succeeded=1)
    assert books(waiting) == {"ready": 3}
    assert not Lease.objects.exists()

    operate.ask_worker(Worker.objects.get().name, "work", by="olga")
    wait_for_books(waiting, succeeded=3)
    assert worker.stop() == 0


def test_worker_that_is_asked_to_stop_drains_and_exits_in_order(fleet, diary):
    """As at a first signal: what runs may end, what waits stays, and its row goes."""
    running = tasks.hold.using(priority=1).enqueue()
    waiting = tasks.record.enqueue_many([()] * 3)
    worker = fleet.start("--concurrency", "1", "--shutdown-timeout", "60", **settings(lease=3))
    wait_until(diary.starts, "the job to start")

    operate.ask_worker(Worker.objects.get().name, "stop", by="olga")
    wait_until(state_is("stopping"), "the worker to say that it stops")
    assert worker.exit_code is None
    diary.open("gate")

    assert worker.wait() == 0
    assert books([running]) == {"succeeded": 1}
    assert books(waiting) == {"ready": 3}
    assert not Worker.objects.exists()
    assert not Job.objects.exclude(attempts=0).exists()


def test_stopped_process_of_a_supervisor_is_not_started_again(fleet, diary):
    """A person has stopped it; the others go on, and with the last of them the supervisor ends in order."""
    supervisor = fleet.start("--processes", "2", "--concurrency", "1", **settings(lease=3))
    wait_until(lambda: Worker.objects.filter(state="running").count() == 2, "both to serve", seconds=60)
    first, second = Worker.objects.order_by("pid")

    operate.ask_worker(first.name, "stop", by="olga")
    wait_until(lambda: set(supervisor.children) == {second.pid}, "the first to end", seconds=60)
    jobs = tasks.record.enqueue_many([()] * 3)
    wait_for_books(jobs, succeeded=3)
    assert set(supervisor.children) == {second.pid}
    assert [worker.pk for worker in Worker.objects.all()] == [second.pk]

    operate.ask_worker(second.name, "stop", by="olga")
    assert supervisor.wait(60) == 0
    assert not Worker.objects.exists()


def test_forgotten_workers_jobs_run_elsewhere_long_before_its_lease_is_over(fleet, diary):
    """What it does when it wakes is refused, and it registers anew."""
    beats = {"lease": 600, "heartbeat": 0.5}
    job = tasks.hold.enqueue()
    frozen = fleet.start("--concurrency", "1", **settings(**beats))
    wait_until(diary.starts, "the job to start")
    lost = Worker.objects.get()
    freeze(frozen)

    with override_settings(WORKQUEUE={"HEARTBEAT": 0.5}):
        wait_until(lambda: _is_forgotten(lost), "the worker to count as silent")
    fleet.start("--concurrency", "1", **settings(**beats))
    wait_until(lambda: len(diary.starts()) == 2, "the job to start elsewhere")
    frozen.thaw()
    wait_until(lambda: Worker.objects.filter(pk=lost.pk).exists(), "the forgotten one to say that it lives")
    diary.open("gate")
    wait_for_books([job], succeeded=1)

    assert failure_kinds(job) == ["lapsed"]
    assert [entry.attempt for entry in diary.starts()] == [1, 2]


def _is_forgotten(worker: Worker) -> bool:
    try:
        operate.forget_worker(worker.name, by="olga")
    except WorkerRequestError:
        return False
    return True
