"""The statements of limits and pauses walk the indexes meant for them, on a worker's session and on a project's own."""

from __future__ import annotations

import pytest
from django.db import connection

from django_workqueue.models import Job, Lease
from django_workqueue.store import store_for

from .test_plans import JOB, KEY, LEASE_KEY, assert_walks, backlog, plans, run

__all__ = ["backlog", "plans"]

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

# One key with a long backlog among fifty others, each with one job; all in one lane. And parked jobs of two tasks.
WITHHELD = f"""
UPDATE {JOB} SET state = 'blocked', queue = 'default', tenant = 't1', concurrency_limit = 3,
                 concurrency_key = CASE WHEN priority = 0 THEN 'long' ELSE 'k' || right(id::text, 2) END
WHERE state = 'scheduled' AND tenant IN ('t1', 't2', 't3', 't4', 't5', 't6', 't7', 't8', 't9');
UPDATE {JOB} SET state = 'parked', task = CASE WHEN priority = 0 THEN 'a' ELSE 'b' END
WHERE state = 'scheduled' AND tenant LIKE 't3%'
"""
BLOCKED, SLOTS, PARKED = "dwq_job_blocked", "dwq_job_slots", "dwq_job_parked"


@pytest.fixture
def withheld(backlog):
    """Block and park many of the backlog's jobs."""
    run(WITHHELD)
    run(f"UPDATE {JOB} SET tenant = 't1', concurrency_key = 'long' WHERE id IN ("
        f"SELECT id FROM {JOB} WHERE state = 'leased' LIMIT 2)")  # fmt: skip


def test_admission_looks_at_as_many_jobs_as_it_lets_go(withheld, plans):
    """However many wait for the key."""
    asked = [("default", "t1", "long"), ("default", "t1", "none")]

    [plan] = [plan for plan in plans(lambda store: store.admit(asked)) if plan.statement.startswith("\nWITH asked")]

    assert_walks(plan, BLOCKED, SLOTS, KEY, buffers=100)
    assert Job.objects.ready().filter(concurrency_key="long").count() == 1


def test_walk_over_blocked_keys_is_a_descent_for_each(withheld, plans):
    """The job at the head of each key says whether there is room; those behind it are not looked at."""
    [plan] = plans(lambda store: store.blocked_keys(limit=20))

    assert_walks(plan, BLOCKED, SLOTS, buffers=300)


def test_look_for_withheld_jobs_is_two_descents(withheld, plans):
    """Each worker asks again and again."""
    Job.objects.filter(state="blocked").update(state="ready")

    for plan in plans(lambda store: store.has_withheld()):
        assert plan.indexes(JOB) <= {BLOCKED, PARKED}
        assert plan.discarded == 0


def test_parked_jobs_are_found_by_their_task(withheld, plans):
    """Thousands of them, let go in batches."""
    for plan in plans(lambda store: store.parked_tasks()):
        assert plan.indexes(JOB) == {PARKED}
        assert plan.discarded == 0
    for plan in plans(lambda store: store.unpark(["a"], limit=50)):
        assert plan.indexes(JOB) <= {PARKED, KEY}
        assert plan.buffers <= 2500


def test_leased_jobs_are_counted_by_their_leases(backlog, plans):
    """The backlog is not looked at: what is read is what the fleet holds."""
    [plan] = plans(lambda store: store.leased_tenants("mail"))

    assert "Seq Scan" not in plan.kinds
    assert plan.indexes(JOB) == {"dwq_job_lease"}
    assert plan.indexes(Lease._meta.db_table) == {LEASE_KEY}


def test_depth_is_counted_in_the_index_and_no_further_than_its_bound(withheld, plans):
    """A tenant with a long backlog costs no more than one at its limit."""
    for plan in plans(lambda store: store.depth("default", "t1", 100)):
        assert_walks(plan, "dwq_job_ready", buffers=120)


def test_admission_on_a_projects_own_connection_is_pinned_too(db):
    """After a commit it runs where the job was enqueued; the settings go with its transaction."""
    store_for().admit([("default", "t1", "long")])

    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("off",)
