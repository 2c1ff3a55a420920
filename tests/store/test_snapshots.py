"""
A claim's cost while somebody holds an old snapshot, as a nightly dump does.

The index entries of jobs that are over cannot be removed then, and they lie in front of those that wait.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection

from django_workqueue.domain.rotation import Rotation
from django_workqueue.lifecycle.claim import claim
from django_workqueue.models import Job, Lease
from tests.claims import succeeded
from tests.filling import fill_ready

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

JOB, LEASE = Job._meta.db_table, Lease._meta.db_table
JOBS, BATCH = 60_000, 200
CLAIMS = JOBS // BATCH
FIRST, LAST = 0, 4
PAGES = """
SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read FROM pg_statio_user_tables WHERE relname = %s
"""


def run(*statements: str) -> None:
    """Run statements outside any transaction."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def old_snapshot():
    """Hold a snapshot of now in another session."""
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
    try:
        yield
    finally:
        other.close()


@pytest.fixture
def uncleaned(store):
    """Keep the server's own cleaning out of the count of pages, and return the store."""
    run(*[f"ALTER TABLE {table} SET (autovacuum_enabled = off)" for table in (JOB, LEASE)])
    yield store
    run(*[f"ALTER TABLE {table} RESET (autovacuum_enabled)" for table in (JOB, LEASE)])


def pages_seen() -> int:
    """Return how many pages of jobs and of their indexes were looked at so far."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(PAGES, [JOB])
        return cursor.fetchone()[0]


def growth(store, *, marks: bool) -> float:
    """Work off a new backlog, and return how many pages the last fifth of its claims saw for each of the first."""
    run(f"TRUNCATE {JOB}, {LEASE}")
    fill_ready(JOBS, scattered=True)
    rotation, pages = Rotation(), Counter()
    rotation.learn([""])
    for number in range(CLAIMS):
        if not marks:
            rotation.forget_marks()
        fifth = number * 5 // CLAIMS
        before = pages_seen() if fifth in {FIRST, LAST} else 0
        jobs = claim(store, rotation, queue="default", worker="worker-1", limit=BATCH)
        pages[fifth] += pages_seen() - before if fifth in {FIRST, LAST} else 0
        done = [succeeded(job, retention=timedelta()) for job in jobs]
        assert len(store.complete(jobs[0].lease_id, done, worker="worker-1", last=True)) == BATCH
    return pages[LAST] / pages[FIRST]


def test_marks_keep_claims_flat(uncleaned):
    """Each claim enters the index where the last one ended; without that memory it steps over all that is dead."""
    with old_snapshot():
        with_marks, without = growth(uncleaned, marks=True), growth(uncleaned, marks=False)

    assert with_marks <= 1.5
    assert without > 3
