"""Limits hold for the whole fleet, also while its workers are shot."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from django.db import connection

from django_workqueue.lifecycle import operate
from django_workqueue.models import Job, Lease

from . import tasks
from .diary import Diary, clock
from .harness import Fleet, books, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

LIMIT = 3


def most_at_once(diary: Diary, killed: Mapping[str, float]) -> int:
    """Return the largest number of attempts that lived at one moment: begun, not ended, their worker not killed."""
    ends = {(entry.job, entry.attempt): entry.at for entry in diary.entries("end")}
    changes = []
    for entry in diary.starts():
        end = ends.get((entry.job, entry.attempt), killed.get(entry.worker, float("inf")))
        changes += [(entry.at, 1), (end, -1)]
    most = running = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


def shoot_until_done(fleet: Fleet, diary: Diary, jobs: list, *, shots: int, **options: object) -> dict[str, float]:
    """Kill a worker after every few starts, replace it, wait for the end of all, and return when each was killed."""
    killed: dict[str, float] = {}
    step = len(jobs) // (shots + 1)
    for shot in range(shots):
        wait_until(lambda shot=shot: len(diary.starts()) >= step * (shot + 1), "more starts", seconds=60)
        victim = random.choice([worker for worker in fleet.workers if worker.exit_code is None])
        victim.kill()
        killed[victim.name] = clock()
        fleet.start("--concurrency", "4", ready=False, **settings(lease=2, reap_interval=0.5, **options))
    wait_for_books(jobs, succeeded=len(jobs), seconds=90)
    return killed


@pytest.mark.parametrize("kind", ["queue", "key"])
def test_limit_is_exact_while_workers_are_shot(fleet, diary, kind):
    """Four processes with sixteen slots never run more than three, and no slot is lost with a worker."""
    workers, count, shots = (4, 48, 5) if connection.vendor == "postgresql" else (2, 20, 2)
    task = tasks.occupy.using(max_attempts=50)
    if kind == "key":
        task = task.using(concurrency_key="printer", concurrency_limit=LIMIT)
    options = {"concurrency": LIMIT} if kind == "queue" else {}

    fleet.start_many(workers, "--concurrency", "4", **settings(lease=2, reap_interval=0.5, **options))
    jobs = task.enqueue_many([(0.15,)] * count)
    killed = shoot_until_done(fleet, diary, list(jobs), shots=shots, **options)

    assert most_at_once(diary, killed) == LIMIT
    assert not Job.objects.exists()
    wait_until(lambda: not Lease.objects.exists(), "the leases to be gone")


def test_others_pass_what_is_at_its_limit(fleet, diary):
    """A key with a long backlog holds up neither another key nor jobs without one."""
    first = tasks.hold.using(concurrency_key="a").enqueue_many([()] * 20)
    fleet.start("--concurrency", "4")
    wait_until(lambda: len(diary.starts()) == 1, "the one job of the key")

    others = [
        *tasks.record.using(concurrency_key="b").enqueue_many([()] * 5),
        *tasks.record.enqueue_many([()] * 5),
    ]
    wait_for_books(others, succeeded=10)

    assert books(first) == {"leased": 1, "blocked": 19}
    diary.open("gate")
    wait_for_books(first, succeeded=20)


def test_rate_holds_for_all_workers_together(fleet, diary):
    """Two workers begin no more than five in a window, and go on by themselves in the next one."""
    jobs = tasks.record.enqueue_many([()] * 12)
    fleet.start_many(2, "--concurrency", "4", **settings(rate=[5, 4]))

    wait_for_books(jobs, succeeded=12, seconds=40)

    starts = sorted(entry.at for entry in diary.starts())
    # From the first of a window to the first of the next one it is a period, whatever the workers' pace.
    assert starts[5] - starts[0] >= 3.5
    assert starts[10] - starts[5] >= 3.5


def test_kill_switch_stops_a_task_and_lets_it_go(fleet, diary):
    """Within two seconds in every worker; the jobs behind pass, and none is lost or loses an attempt."""
    fleet.start_many(2, "--concurrency", "2")
    operate.pause(task=tasks.occupy, by="olga")
    wait_until(_is_parking, "all workers to have seen the pause")
    seen = len(diary.starts())

    paused = tasks.occupy.enqueue_many([(0.0,)] * 30)
    others = tasks.record.enqueue_many([()] * 10)
    wait_for_books(others, succeeded=10)
    wait_for_books(paused, parked=30)
    assert len(diary.starts()) == seen + 10

    operate.resume(task=tasks.occupy)
    wait_for_books(paused, succeeded=30)
    assert {entry.attempt for entry in diary.starts()} == {1}


def _is_parking() -> bool:
    """Enqueue a few and say whether they are all set aside: a worker that has not looked yet would run some."""
    probes = tasks.occupy.enqueue_many([(0.0,)] * 8)
    wait_until(lambda: not books(probes).keys() & {"ready", "leased"}, "the probes to be run or parked")
    return books(probes) == {"parked": 8}
