"""Several processes under a supervisor: they are kept running, replaced without a gap, and stopped together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from django_workqueue.models import Failure, FinishedJob, Job, Lease, Worker
from testproject.benchmarks.fleet import children_of

from . import tasks
from .harness import books, disguised, failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]

PLACES = ("--processes", "2", "--concurrency", "2")
#: Where no lease is to lapse, however busy the machine is.
LONG = settings(lease=60)


def serving() -> set[int]:
    """Return the ids of the processes that say that they serve."""
    return set(Worker.objects.filter(state="running").values_list("pid", flat=True))


def start(fleet, *options, **environment):
    """Start a supervisor and wait until all its processes serve."""
    supervisor = fleet.start(*PLACES, *options, **environment)
    wait_until(lambda: len(serving()) == 2, "every process to serve", seconds=60)
    return supervisor


def test_killed_process_is_replaced_and_nothing_is_lost(fleet, diary):
    """The other one goes on; what the dead one held comes back when its leases lapse."""
    jobs = tasks.hold.enqueue_many([()] * 8)
    supervisor = start(fleet, **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 4, "all slots to be busy")
    before = serving()
    assert before == set(supervisor.children)

    os.kill(min(before), signal.SIGKILL)
    wait_until(lambda: serving() - before, "the replacement")
    diary.open("gate")
    wait_for_books(jobs, succeeded=8)

    assert Failure.objects.filter(kind="lapsed").count() == 2
    assert max(before) in supervisor.children
    assert supervisor.stop() == 0


def test_job_that_kills_its_process_pays_and_the_pool_stays_up(fleet, diary):
    """Three starts and it is dead; other jobs run meanwhile (celery/celery#8610)."""
    poison = tasks.kill_own_worker.using(max_attempts=3, priority=1).enqueue()
    others = tasks.record.enqueue_many([()] * 20)
    supervisor = fleet.start(*PLACES, **settings(lease=1))

    wait_for_books([poison], seconds=90, exhausted=1)
    wait_for_books(others, succeeded=20)

    assert [entry.attempt for entry in diary.starts(poison.id)] == [1, 2, 3]
    assert supervisor.exit_code is None
    wait_until(lambda: len(supervisor.children) == 2, "the pool to be whole")


def test_crash_loop_ends_with_a_word(fleet):
    """A process that crashes by itself at each start is not started for ever."""
    supervisor = fleet.start(*PLACES, program=disguised("sick-heartbeat"), ready=False, **settings(lease=1))

    assert supervisor.wait(120) == 1
    assert "starts in a row failed, the last with exit code 1. The supervisor stops; see the log." in supervisor.log


def test_stop_drains_all_processes(fleet, diary):
    """One signal is one request, also where a service manager sends it to every process (timgit/pg-boss#102)."""
    running = tasks.hold.using(priority=1).enqueue_many([()] * 4)
    waiting = tasks.record.enqueue_many([()] * 3)
    supervisor = start(fleet, "--shutdown-timeout", "60", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 4, "all slots to be busy")

    supervisor.signal(signal.SIGTERM)
    for pid in supervisor.children:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not serving(), "both to say that they stop")
    assert books(running) == {"leased": 4}
    diary.open("gate")

    assert supervisor.wait(30) == 0
    assert books(running) == {"succeeded": 4}
    assert books(waiting) == {"ready": 3}
    assert not Worker.objects.exists()
    assert supervisor.complaints == []


def test_second_signal_ends_all_processes_now(fleet, diary):
    """Their jobs wait again at once (procrastinate-org/procrastinate PR#366)."""
    jobs = tasks.hold.enqueue_many([()] * 4)
    supervisor = start(fleet, "--shutdown-timeout", "600", **settings(lease=60, heartbeat=1))
    wait_until(lambda: len(diary.starts()) == 4, "all slots to be busy")

    # As Ctrl-C does, to the whole group in the foreground.
    os.killpg(supervisor.pid, signal.SIGINT)
    wait_until(lambda: not serving(), "both to say that they stop")
    os.killpg(supervisor.pid, signal.SIGINT)

    assert supervisor.wait(30) == 0
    assert books(jobs) == {"ready": 4}
    assert failure_kinds(jobs[0]) == ["interrupted"]
    assert not Lease.objects.exists()


def test_processes_stop_when_their_supervisor_is_killed(fleet, diary):
    """They hear it by the end of their link, end what they run, and leave nothing behind."""
    jobs = tasks.hold.enqueue_many([()] * 4)
    supervisor = start(fleet, "--shutdown-timeout", "60", **settings(lease=2))
    wait_until(lambda: len(diary.starts()) == 4, "all slots to be busy")

    supervisor.signal(signal.SIGKILL)
    wait_until(lambda: not serving(), "both to say that they stop")
    diary.open("gate")
    wait_for_books(jobs, succeeded=4)

    wait_until(lambda: not Worker.objects.exists(), "both to leave")
    assert failure_kinds(jobs[0]) == []


def test_name_is_adopted_by_each_process_for_itself(fleet, diary):
    """A killed process's successor has its jobs back at once, however long the lease."""
    jobs = tasks.hold.enqueue_many([()] * 4)
    supervisor = start(fleet, "--name", "web1", **settings(lease=600))
    wait_until(lambda: len(diary.starts()) == 4, "all slots to be busy")
    doomed = Worker.objects.get(name="web1-2")

    os.kill(doomed.pid, signal.SIGKILL)
    wait_until(lambda: len(diary.starts()) == 6, "the second attempts", seconds=40)

    assert f"Adopted 2 jobs from {doomed.pk}." in supervisor.log
    assert set(Worker.objects.values_list("name", flat=True)) == {"web1-1", "web1-2"}
    diary.open("gate")
    wait_for_books(jobs, succeeded=4)
    assert sorted(failure_kinds(job) for job in jobs) == [[], [], ["adopted"], ["adopted"]]


# -- recycling ---------------------------------------------------------------------------------------------------------


def test_each_process_runs_no_more_jobs_than_it_may(fleet, diary):
    """Every job once, by as many processes as that takes (RealOrangeOne/django-tasks#148)."""
    jobs = tasks.nap.enqueue_many([(0.05,)] * 60)
    supervisor = fleet.start(*PLACES, "--max-jobs", "10", **LONG)
    wait_for_books(jobs, seconds=120, succeeded=60)

    assert Counter(entry.job for entry in diary.starts()) == {str(job.id): 1 for job in jobs}
    done = Counter(FinishedJob.objects.values_list("worker", flat=True))
    assert max(done.values()) <= 10
    assert len(done) >= 6
    assert not Failure.objects.exists()
    assert supervisor.stop() == 0
    assert supervisor.complaints == []


def test_successor_serves_before_the_worn_process_drains(fleet, diary):
    """There is no gap, and a long job is not interrupted: its process stays until it ends."""
    long = tasks.hold.enqueue()
    options = ("--processes", "1", "--concurrency", "2", "--name", "web1", "--max-lifetime", "1", "--shutdown-timeout")
    supervisor = fleet.start(*options, "1", **settings(lease=600))
    wait_until(diary.starts, "the long job to start")
    [old] = supervisor.children
    wait_until(lambda: serving() - {old}, "the successor", seconds=60)

    others = tasks.record.enqueue_many([()] * 5)
    wait_for_books(others, succeeded=5)
    assert books([long]) == {"leased": 1}
    assert old in supervisor.children
    diary.open("gate")
    wait_for_books([long], succeeded=1)

    wait_until(lambda: old not in supervisor.children, "the worn process to leave")
    assert [entry.attempt for entry in diary.starts(long.id)] == [1]
    assert not Failure.objects.exists()


def test_process_that_grows_is_replaced(fleet, diary):
    """Between jobs, before it eats the host; a worker by itself stops, and somebody starts it again."""
    jobs = []
    supervisor = start(fleet, "--max-memory", "150M", **LONG)
    before = wait_until(lambda: len(found := serving()) == 2 and found, "both to serve")

    def are_replaced():
        if not Job.objects.exists():
            jobs.extend(tasks.grow.enqueue_many([(40,)] * 4))
        return len(serving()) == 2 and not serving() & before

    wait_until(are_replaced, "both to be replaced", seconds=60)
    wait_for_books(jobs, seconds=60, succeeded=len(jobs))
    assert not Failure.objects.exists()
    assert supervisor.stop(40) == 0

    more = tasks.grow.enqueue_many([(40,)] * 12)
    alone = fleet.start("--concurrency", "1", "--max-memory", "150M", ready=False)
    assert alone.wait(60) == 0
    assert "MB of memory" in alone.log
    left = books(more)
    assert left["ready"] > 0
    assert left["succeeded"] + left["ready"] == 12


# -- process 1 ---------------------------------------------------------------------------------------------------------

# Only root needs no user namespace for it, and in one could not reach a server of another user.
AS_USER = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
UNSHARE = ["unshare", *AS_USER, "--pid", "--fork", "--kill-child", "--mount-proc"]


def may_unshare() -> bool:
    """Whether a process namespace can be had here."""
    try:
        return subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not may_unshare(), reason="process namespaces are not to be had here")
def test_supervisor_is_a_good_process_1(fleet, diary):
    """It hears signals, though none is handled by default, and no ended process stays in the table (rq/rq#1193)."""
    command = [*UNSHARE, sys.executable, "-m", "django", "runworkers"]
    program = ("-c", f"import os, sys; os.execvp('unshare', {command} + sys.argv[1:])")
    jobs = tasks.leave_orphan.enqueue_many([()] * 20)
    unshare = fleet.start(*PLACES, "--max-jobs", "10", program=program)
    [supervisor] = unshare.children
    wait_for_books(jobs, seconds=60, succeeded=20)

    def defunct() -> list[int]:
        return [pid for pid in children_of(supervisor) if " Z " in status(pid)]

    wait_until(lambda: len(children_of(supervisor)) == 2 and not defunct(), "the table to be clean", seconds=60)
    os.kill(supervisor, signal.SIGTERM)

    assert unshare.wait(30) == 0
    assert not Job.objects.exists()
    assert not Worker.objects.exists()


def status(pid: int) -> str:
    """Return the line in which the system tells a process's state; empty for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
