"""The walk over groups of dead letters looks at a few entries of the index for each, whatever the statistics say."""

from __future__ import annotations

import pytest
from django.db import connection

from django_workqueue.models import DeadLetter
from django_workqueue.store import store_for
from tests.store.explaining import explain

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

DEAD = DeadLetter._meta.db_table
FILL = f"""
INSERT INTO {DEAD} (id, queue, tenant, task, args, kwargs, priority, attempts, max_attempts, interruptions,
                    dedupe_until_start, enqueued_at, metadata, last_error, reason, fingerprint, died_at,
                    acknowledged_by, note)
SELECT lpad(to_hex(n), 32, '0')::uuid, 'default', '', 'shop.tasks.send', '[]', '{{}}', 0, 5, 5, 0, false, now(), '{{}}',
       'ValueError: no', 'exhausted', md5((n % 20)::text), now() - n * interval '1 second', '', ''
FROM generate_series(1, 50000) n
"""


def test_groups_are_found_by_their_index_with_stale_statistics():
    """With statistics of an empty table a scan of all letters for each group would look cheap."""
    plans = []

    def execute(run, statement, parameters, many, context):
        if "WITH RECURSIVE walk" in statement:
            plans.append(explain(statement, parameters))
        return run(statement, parameters, many, context)

    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {DEAD}")
        cursor.execute(FILL)
    with connection.execute_wrapper(execute):
        rows = store_for().dead_groups(limit=51, offset=0, most=2000, cap=101)

    (plan,) = plans
    assert [row.size for row in rows] == [101] * 20
    assert plan.indexes(DEAD) == {"dwq_dead_group"}
    assert plan.buffers < 5000
