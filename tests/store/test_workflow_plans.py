"""Settling a member looks at a few members, however many there are and whatever the statistics say."""

from __future__ import annotations

import pytest
from django.db import connection

from django_workqueue import chord
from django_workqueue.models import Workflow, WorkflowMember
from tests.claims import claim, succeeded
from tests.workflows import sample_tasks as tasks

from .explaining import explained

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

MEMBER, WORKFLOW = WorkflowMember._meta.db_table, Workflow._meta.db_table
BESIDE = 100_000
"""Members of other workflows, a thousand each."""
FILL = f"""
INSERT INTO {MEMBER} (id, workflow_id, position, parent, last, kind, state, task)
SELECT gen_random_uuid(), lpad(to_hex(n / 1000), 32, '0')::uuid, n % 1000, CASE WHEN n % 1000 > 0 THEN 0 END,
       CASE WHEN n % 1000 > 0 THEN n % 1000 ELSE 999 END, CASE WHEN n % 1000 > 0 THEN 'task' ELSE 'group' END,
       'active', 'tests.samples.add'
FROM generate_series(1000, {BESIDE + 999}) AS n
"""


@pytest.mark.parametrize("fresh", [False, True], ids=["stale", "fresh"])
def test_end_of_a_member_walks_the_indexes(store, monkeypatch, fresh):
    """A scan of all members for each end would cost more than the job."""
    with connection.cursor() as cursor:
        cursor.execute(FILL)
        if fresh:
            cursor.execute(f"ANALYZE {MEMBER}")
    chord([tasks.say.signature(number) for number in range(300)], tasks.say.signature()).enqueue()
    jobs = claim(store, limit=100, quantum=100)

    with explained(monkeypatch, MEMBER, WORKFLOW) as plans:
        store.complete_members(jobs[0].lease_id, [succeeded(job) for job in jobs], worker="w", last=True)

    assert plans
    for plan in plans:
        assert "Seq Scan" not in plan.kinds, plan.statement
        assert plan.discarded <= 300, plan.statement
    assert any("dwq_member_open" in plan.indexes(MEMBER) for plan in plans)
