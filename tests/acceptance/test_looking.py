"""People look while workers work: nothing waits, and nothing comes out otherwise."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from django.db import connection

from django_workqueue.models import FinishedJob
from tests.admin.pages import page
from tests.factories import DeadLetterFactory

from . import tasks
from .harness import wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.postgresql, pytest.mark.timeout(300)]

LOADS = 200
#: A lock on a row, and a write, need a transaction's id.
STANDING = """
SELECT pg_current_xact_id_if_assigned() IS NULL, current_setting('transaction_read_only'),
       ARRAY(SELECT DISTINCT mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid'),
       (SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))
"""


class Watch:
    """Asks behind each statement of a page what its connection holds, and who waits for it."""

    def __init__(self):
        self.looks = 0
        self.wrong = set()

    def __call__(self, run, statement, parameters, many, context):
        """Carry the statement out, and ask."""
        result = run(statement, parameters, many, context)
        if connection.in_atomic_block and "django_workqueue_" in statement:
            self.looks += 1
            with connection.connection.cursor() as cursor:
                unassigned, read_only, modes, blocked = cursor.execute(STANDING).fetchone()
            if not unassigned or read_only != "on" or modes != ["AccessShareLock"] or blocked:
                self.wrong.add((statement, unassigned, read_only, tuple(modes), blocked))
        return result


def test_looking_disturbs_no_worker(fleet, admin_client):
    """
    Two hundred pages while five hundred jobs run and a large decision is carried out, and every job is done once.

    No statement of a page locks a row, writes, or keeps another session waiting (django-background-tasks#144, #177).
    """
    letters = DeadLetterFactory.create_batch(150, task=tasks.record.module_path, args="[]", kwargs="{}")
    jobs = tasks.record.enqueue_many([()] * 500)
    fleet.start_many(2, "--concurrency", "2")
    admin_client.post(page("deadletter", name="all_requeue"), {"confirmed": "yes"})
    lists = [page(model) for model in ("job", "deadletter", "finishedjob", "lease", "worker", "queue")]
    looked_at = [
        *lists,
        page("job", query="?state=ready"),
        page("job", query="?state=leased"),
        page("queue", name="overview"),
        page("queue", name="statistics"),
        page("deadletter", name="groups"),
    ]

    watch = Watch()
    with connection.execute_wrapper(watch):
        for address in islice(cycle(looked_at), LOADS):
            assert admin_client.get(address).status_code == 200

    wait_for_books(jobs, succeeded=500, seconds=120)
    decided = lambda: FinishedJob.objects.filter(task__endswith="bulk.decide").exists()  # noqa: E731 - said once
    wait_until(decided, "the decision to be carried out", seconds=120)
    wait_for_books(letters, succeeded=150, seconds=120)
    assert watch.looks > LOADS
    assert watch.wrong == set()
    assert fleet.complaints == []
