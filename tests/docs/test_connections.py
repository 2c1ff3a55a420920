"""docs/reference/connections.md against a worker's real threads."""

from __future__ import annotations

import time
from threading import Barrier

import pytest
from django.db import connection

from django_workqueue import task
from django_workqueue.models import FinishedJob
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.process import EXIT_CLEAN, WorkerProcess

from .pages import rows, section

PAGE = "docs/reference/connections.md"
SLOTS = 3
ALWAYS = 4
"""Dispatcher, heartbeat, maintenance and listener."""
together = Barrier(SLOTS, timeout=20)


def count_connections() -> int:
    """Return how many connections the test's database has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return cursor.fetchone()[0]


@task(retention=60)
def look_around():
    """Hold a connection beside the other slots, and count until all that are documented are there."""
    seen = [count_connections()]
    together.wait()
    deadline = time.monotonic() + 20
    while seen[-1] != ALWAYS + SLOTS and time.monotonic() < deadline:
        seen.append(count_connections())
    together.wait()
    return max(seen)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_worker_holds_the_documented_connections(settings):
    """Whoever sizes max_connections by the page is not surprised: four, and one for each slot that uses one."""
    settings.WORKQUEUE = {"HEARTBEAT": 0.1}
    look_around.enqueue_many([()] * SLOTS)

    code = WorkerProcess(WorkerOptions(max_jobs=SLOTS, concurrency=SLOTS)).run()

    assert code == EXIT_CLEAN
    assert [job.result for job in FinishedJob.objects.all()] == [str(ALWAYS + SLOTS)] * SLOTS


def test_page_counts_what_a_worker_always_holds():
    """The sum on the page is that of its table."""
    text = section(PAGE, "Connections of a worker", level=1)
    always = [cells for cells in rows(text) if cells[1] == "1"]

    assert len(always) == ALWAYS
    assert f"holds {ALWAYS} connections" in text.replace("\n", " ")
    assert f"{ALWAYS} and twice --concurrency" in text.replace("\n", " ")
