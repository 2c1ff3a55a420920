"""
What must not grow while a worker goes on: its connections and its memory.

``WORKQUEUE_SIEGE=full`` runs them at their full size: five minutes, and five thousand jobs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.db import connection

from django_workqueue.models import FinishedJob, Job

from . import tasks
from .diary import clock
from .harness import settings, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]

FULL = os.environ.get("WORKQUEUE_SIEGE") == "full"
SLOTS = 20
SECONDS = 300 if FULL else 6
JOBS = 5000 if FULL else 1000
MEGABYTE = 1024 * 1024
# Autovacuum comes and goes as it likes.
OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def connections_of_others() -> int:
    """Return how many connections the test's database has beside this one."""
    with connection.cursor() as cursor:
        cursor.execute(OTHERS)
        return cursor.fetchone()[0]


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.postgresql
def test_connections_are_as_many_as_documented_and_stay_so(fleet):
    """Four, and one for each slot whose jobs touch the database; none more with time (oban-bg/oban#364)."""
    before = connections_of_others()
    worker = fleet.start("--concurrency", str(SLOTS), **settings(lease=30))
    tasks.ask.enqueue_many([(1, 0.2)] * SLOTS * 3)
    wait_until(lambda: connections_of_others() - before >= 4 + SLOTS, "each slot to have a connection", seconds=60)

    seen, until = set(), clock() + SECONDS
    while clock() < until:
        if Job.objects.count() < SLOTS * 3:
            tasks.ask.enqueue_many([(1, 0.2)] * SLOTS * 3)
        seen.add(connections_of_others() - before)

    assert seen == {4 + SLOTS}
    assert FinishedJob.objects.count() > SLOTS * SECONDS
    assert worker.stop() == 0
    wait_until(lambda: connections_of_others() == before, "the worker's connections to be gone")
    assert fleet.complaints == []


def test_memory_does_not_grow_where_every_statement_is_kept(fleet):
    """With DEBUG on, Django keeps the statements of each thread (django/django PR#2772, Uninett/nav#97)."""
    fleet.environment["DEBUG"] = "true"
    worker = fleet.start("--concurrency", "4", **settings(lease=30))
    run(200)
    before = resident(worker.pid)

    run(JOBS)

    assert resident(worker.pid) - before < 30 * MEGABYTE
    assert worker.stop() == 0


def run(count: int) -> None:
    """Let so many jobs run that each have ten statements."""
    done = FinishedJob.objects.count() + count
    tasks.ask.enqueue_many([(10,)] * count)
    wait_until(lambda: FinishedJob.objects.count() >= done, f"{count} jobs", seconds=600)
