"""Connections that break at the worst moment: between worker and server, in the listener, in the job itself."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Group
from django.db import connection

from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job

from . import tasks
from .diary import clock
from .harness import books, disguised, end_sessions, failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]

CLAIM, COMPLETE = b"WITH picked AS MATERIALIZED", b"gone AS ("
FAIL = (b'INSERT INTO "django_workqueue_failure"', b"COMMIT")


@pytest.mark.postgresql
def test_claim_whose_answer_is_lost_runs_once(fleet, diary, proxy):
    """The server has leased a job to a worker that never heard of it: it comes back uncharged, at once."""
    worker = fleet.start("--concurrency", "1", **settings(lease=60))
    proxy.lose_reply(CLAIM)
    job = tasks.record.using(max_attempts=1).enqueue()
    assert proxy.lost.wait(20)

    wait_for_books([job], succeeded=1, seconds=15)

    assert [entry.attempt for entry in diary.starts()] == [1]
    assert failure_kinds(job) == []
    assert "Gave back 1 jobs of claims whose answer was lost" in worker.log


@pytest.mark.postgresql
@pytest.mark.parametrize("retention", [60, 0])
def test_success_whose_answer_is_lost_counts_once(fleet, diary, proxy, retention):
    """A completion that was committed unheard is neither repeated nor taken back, kept or not."""
    fleet.start("--concurrency", "1", **settings(lease=60, retention=retention))
    proxy.lose_reply(COMPLETE)
    job = tasks.record.enqueue()
    assert proxy.lost.wait(20)

    after = tasks.record.enqueue()
    wait_until(lambda: not Job.objects.exists(), "both jobs to end", seconds=15)

    assert books([job, after]) == ({"succeeded": 2} if retention else {"lost": 2})
    assert len(diary.starts(job.id)) == 1
    assert failure_kinds(job) == []


@pytest.mark.postgresql
def test_failure_whose_answer_is_lost_counts_once(fleet, diary, proxy):
    """An attempt that failed is charged once, and the last one makes one dead letter."""
    diary.open("gate")
    fleet.start("--concurrency", "1", **settings(lease=60))
    proxy.lose_reply(*FAIL)
    job = tasks.hold.using(max_attempts=2).enqueue(error="always")
    assert proxy.lost.wait(20)

    wait_for_books([job], exhausted=1, seconds=15)

    assert [entry.attempt for entry in diary.starts()] == [1, 2]
    assert failure_kinds(job) == ["error", "error"]


@pytest.mark.postgresql
def test_listener_comes_back_after_its_session_ended(fleet, diary):
    """Polling covers the gap, and soon jobs start at once again (taskforcesh/bullmq#4729)."""
    fleet.start("--poll-interval", "4")
    ended = wait_until(listeners, "the listener")
    assert end_sessions("LISTEN") == 1

    in_the_gap = tasks.record.enqueue()
    wait_for_books([in_the_gap], succeeded=1, seconds=15)
    wait_until(lambda: listeners() - ended, "the listener to be back")
    assert start_delay(diary) < 3


@pytest.mark.postgresql
def test_deaf_listener_notices_and_connects_again(fleet, diary, proxy):
    """A connection that stays open and says nothing any more is found out by the listener's own probe."""
    worker = fleet.start("--poll-interval", "4", program=disguised("quick-probe"))
    deaf = wait_until(listeners, "the listener")
    assert proxy.silence(b"LISTEN") == 1

    worker.wait_for_log("The listener lost its connection")
    wait_until(lambda: listeners() - deaf, "the listener to be back")
    assert start_delay(diary) < 3


def listeners():
    """Return the server's process ids of the sessions that listen."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
        return {pid for (pid,) in cursor.fetchall()}


def start_delay(diary):
    """Enqueue a job and return how long it waited for its start."""
    enqueued_at = clock()
    job = tasks.record.enqueue()
    wait_for_books([job], succeeded=1, seconds=10)
    return diary.starts(job.id)[0].at - enqueued_at


@pytest.mark.postgresql
def test_server_restarts_under_load_leave_no_trace(fleet, diary, own_database):
    """Workers reconnect by themselves, and jobs that ran meanwhile are recorded (celery/celery#621)."""
    fleet.start_many(2, "--concurrency", "4", **settings(lease=20))
    held = tasks.hold.enqueue_many([()] * 2)
    wait_until(lambda: len(diary.starts()) == 2, "the held jobs to run")

    loads = [load_and_restart(own_database, mode) for mode in ("fast", "immediate", "fast")]
    diary.open("gate")
    wait_for_books([*held, *itertools.chain(*loads)], succeeded=452, seconds=60)

    starts = Counter(entry.job for entry in diary.starts())
    assert [starts[job.id] for job in held] == [1, 1]
    assert all(worker.exit_code is None for worker in fleet.workers)
    assert not FinishedJob.objects.filter(pk__in=[job.id for job in held]).exclude(attempts=1).exists()


def load_and_restart(server, mode):
    """Enqueue jobs, restart the server while they run, and return them."""
    jobs = tasks.nap.enqueue_many([(0.02,)] * 150)
    wait_until(lambda: 0 < books(jobs).get("ready", 0) < 150, "the load to be under way")
    connection.close()
    server.restart(mode)
    return jobs


@pytest.mark.postgresql
def test_worker_waits_for_a_server_that_is_not_up(fleet, diary, own_database):
    """Started first, it serves as soon as the database is there (timgit/pg-boss#510)."""
    job = tasks.record.enqueue()
    connection.close()
    own_database.stop()
    worker = fleet.start(ready=False)
    worker.wait_for_log("cannot be reached")
    assert worker.exit_code is None

    own_database.start()

    wait_for_books([job], succeeded=1)


@pytest.mark.postgresql
def test_worker_stops_in_time_without_its_server(fleet, diary, own_database):
    """A stop does not wait for a database that is away; what the worker held comes back when its lease lapses."""
    job = tasks.hold.enqueue()
    worker = fleet.start("--concurrency", "1", "--shutdown-timeout", "1", **settings(lease=2))
    wait_until(diary.starts, "the job to start")
    connection.close()
    own_database.stop()

    assert worker.stop() == 0

    own_database.start()
    diary.open("gate")
    fleet.start("--concurrency", "1", **settings(lease=2))
    wait_for_books([job], succeeded=1)
    assert failure_kinds(job) == ["lapsed"]


@pytest.mark.postgresql
def test_outage_longer_than_the_lease_costs_one_attempt(fleet, diary, own_database):
    """What ran through it is refused and run again: once, recorded as lapsed, and by a worker that never restarted."""
    job = tasks.hold.using(max_attempts=2).enqueue()
    worker = fleet.start("--concurrency", "1", **settings(lease=1))
    wait_until(diary.starts, "the job to start")
    connection.close()
    own_database.stop()
    # No renewal came after this, so that the lease has lapsed by any clock of this machine a second later.
    lapsed_at = time.time() + 1
    wait_until(lambda: time.time() > lapsed_at, "the lease to lapse")
    diary.open("gate")

    own_database.start()
    wait_for_books([job], succeeded=1)

    assert [entry.attempt for entry in diary.starts()] == [1, 2]
    assert failure_kinds(job) == ["lapsed"]
    assert worker.exit_code is None


def test_worker_on_an_unmigrated_database_says_what_to_do(fleet, empty_database):
    """Exit code 3 and the command, instead of a worker that never finds anything (mojolicious/minion#20)."""
    worker = fleet.start(ready=False, **empty_database)

    assert worker.wait() == 3
    assert "manage.py migrate" in worker.log
    assert "Traceback" not in worker.log


@pytest.fixture
def empty_database(request, tmp_path):
    """Return the environment of a process on a database without any table."""
    if django_settings.TEST_DB == "sqlite":
        return {"WORKQUEUE_TEST_NAME": str(tmp_path / "empty.sqlite3")}
    server = request.getfixturevalue("own_postgres")
    return {"DATABASE_URL": server.url, "WORKQUEUE_TEST_NAME": "postgres"}


WRONG_STATEMENT = {"postgresql": "ProgrammingError", "sqlite": "OperationalError"}[django_settings.TEST_DB]
SPOILING = {
    tasks.raise_after_commit: "RuntimeError",
    tasks.spoil_transaction: "TransactionManagementError",
    tasks.leave_transaction_broken: WRONG_STATEMENT,
    tasks.nest_transactions: WRONG_STATEMENT,
}


def test_spoilt_transaction_spoils_one_attempt(fleet, diary):
    """Whatever a job does to its transaction, its failure is stored (django-background-tasks#158, django-tasks#190)."""
    spoilt = [task.using(max_attempts=1).enqueue() for task in SPOILING]
    after = tasks.read_back.enqueue_many([(f"token {number}",) for number in range(20)])

    worker = fleet.start("--concurrency", "1")
    wait_for_books(spoilt, exhausted=len(SPOILING))
    wait_for_books(after, succeeded=20)

    dead = {letter.task.rpartition(".")[2]: letter.last_error.partition(":")[0] for letter in DeadLetter.objects.all()}
    assert dead == {task.name: error for task, error in SPOILING.items()}
    assert worker.stop() == 0


@pytest.mark.parametrize("forget", [tasks.leave_hook_behind, tasks.leave_own_transaction_open])
def test_forgotten_transaction_ends_with_its_job(fleet, diary, forget):
    """A transaction that a job leaves open swallows nothing of the next job in its slot, and locks nobody out."""
    forgetful = forget.enqueue()
    after = tasks.create_group.enqueue_many([(f"group {number}",) for number in range(5)])

    worker = fleet.start("--concurrency", "1")
    wait_for_books([forgetful, *after], succeeded=6)

    assert sorted(Group.objects.values_list("name", flat=True)) == [f"group {number}" for number in range(5)]
    assert worker.complaints == []


@pytest.mark.postgresql
@pytest.mark.parametrize(("then_query", "places"), [(True, {"exhausted": 1}), (False, {"succeeded": 1})])
def test_job_that_loses_its_connection_is_recorded(fleet, diary, then_query, places):
    """The outcome goes over the worker's own connection, and the slot's next job gets a sound one."""
    fleet.start("--concurrency", "1")
    job = tasks.lose_connection.using(max_attempts=1).enqueue(then_query=then_query)
    after = tasks.read_back.enqueue("sound")

    wait_for_books([job], **places)
    wait_for_books([after], succeeded=1)


def test_worker_survives_errors_of_its_own_statements(fleet, diary):
    """What fails in the loop is logged and tried again, not the end of the worker (RealOrangeOne/django-tasks#190)."""
    worker = fleet.start("--concurrency", "1")
    with renamed("django_workqueue_job"):
        worker.wait_for_log("A round of the worker failed")

    job = tasks.record.enqueue()
    wait_for_books([job], succeeded=1)

    assert worker.stop() == 0


@contextmanager
def renamed(table):
    """Take a table away from the workers for a while."""

    def rename(old, new):
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")

    rename(table, "taken_away")
    try:
        yield
    finally:
        rename("taken_away", table)


@pytest.mark.parametrize("disguise", ["sick-heartbeat", "sick-maintenance"])
def test_worker_that_lost_a_helper_gives_back_and_exits(fleet, diary, disguise):
    """A process that renews nothing or reaps nothing must not go on looking alive: it ends, and not with zero."""
    job = tasks.hold.enqueue()

    worker = fleet.start("--concurrency", "1", program=disguised(disguise), ready=False)
    assert worker.wait() == 1

    assert "CRITICAL" in worker.log
    assert books([job]) == {"ready": 1}
    assert Job.objects.get().attempts == 0
    assert set(Failure.objects.values_list("kind", flat=True)) <= {"interrupted"}


def test_many_slots_share_no_connection(fleet, diary):
    """Every answer reaches the job that asked, over four processes with four slots each (celery/celery#1564)."""
    tokens = [f"token {number}" for number in range(400)]
    jobs = tasks.read_back.enqueue_many([(token,) for token in tokens])

    fleet.start_many(4, "--concurrency", "4", **settings(lease=30))
    wait_for_books(jobs, succeeded=400)

    results = dict(FinishedJob.objects.values_list("args", "result"))
    assert all(args == f"[{result}]" for args, result in results.items())
    assert fleet.complaints == []


@pytest.mark.postgresql
def test_connections_of_a_worker_are_as_documented(fleet, diary):
    """One for each slot whose jobs use the database, and four for the worker itself (oban-bg/oban#364)."""
    fleet.start("--concurrency", "3")
    wait_until(lambda: sessions() == 4, "the worker's own connections")

    jobs = tasks.read_back.enqueue_many([(str(number),) for number in range(300)])
    wait_for_books(jobs, succeeded=300)

    assert 4 < sessions() <= 7


def sessions():
    """Return how many sessions there are besides the test's own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]
