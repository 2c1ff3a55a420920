"""
Every page of the admin, and what the commands print, reads a bounded part of the tables, whatever the planner believes.

The tables hold tens of thousands of rows, windows are set to a few thousand: whatever goes through a table instead of
its window stands out by what it throws away. Statistics were taken before the rows came, or after; a snapshot from
before keeps everything that was deleted since. All pages are asked for, those that are added too: the benchmark of the
screens knows them.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from django_workqueue.admin.changelist import BoundedChangeList
from django_workqueue.lifecycle import listing
from django_workqueue.models import Job, Lease, Pause, Queue, Schedule, Worker
from testproject.benchmarks import screens
from testproject.benchmarks.database import Database
from testproject.benchmarks.drains import held_snapshot
from testproject.benchmarks.measures.screens import forget, left_alone
from testproject.benchmarks.month import Month
from tests.store.explaining import Plan, explained

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db, pytest.mark.timeout(600)]

WINDOW = 2500
ROWS = Month(live=40_000, finished=40_000, dead=12_000, groups=300, minutes=20_000, hours=2000, workflows=2000)
MOST_DISCARDED = 3 * WINDOW
"""A full page and a count may be found sooner past rows of others than in an order that must be sorted."""
MOST_PAGES = 30_000
"""Of eight kilobytes. Counts stop at 10,000 rows, and statistics read 20,000 rollups."""

BIG = {
    model._meta.db_table
    for model in apps.get_app_config("django_workqueue").get_models()
    if model not in {Lease, Pause, Queue, Schedule, Worker}
}
KINDS = sorted({name.partition(".")[0] for name in screens.names()})


@pytest.fixture(scope="module", params=["stale", "fresh"])
def month(request, django_db_setup, django_db_blocker):
    """Fill the tables beside an old snapshot, their statistics taken before or after, and leave them empty."""
    database = Database("postgres://localhost/unused")
    database._entry = connection.settings_dict
    with django_db_blocker.unblock(), left_alone(database):
        ROWS.times(0.02).fill(database)
        forget(database)
        with held_snapshot(database):
            ROWS.fill(database)
            database.execute(
                f"DELETE FROM {Job._meta.db_table} WHERE id IN (SELECT id FROM"
                f" {Job._meta.db_table} ORDER BY id DESC LIMIT 2000)"
            )
            if request.param == "fresh":
                for table in BIG:
                    database.execute(f"ANALYZE {table}")
            yield
    database.close()


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    """Let windows be much smaller than tables."""
    monkeypatch.setattr(BoundedChangeList, "window", WINDOW)
    monkeypatch.setattr(listing, "WINDOW", WINDOW)


def rows_of(node: dict[str, Any]) -> float:
    """Return how many rows a node looked at."""
    return float((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])


def faults(plan: Plan) -> list[str]:
    """Return what is wrong with a plan."""
    scans = [node for node in plan.nodes() if node["Node Type"] == "Seq Scan" and node["Relation Name"] in BIG]
    # What is smaller than a window may as well be read whole.
    found = [f"scans {node['Relation Name']}" for node in scans if rows_of(node) > WINDOW]
    if plan.discarded > MOST_DISCARDED:
        found.append(f"throws {plan.discarded} rows away")
    if plan.buffers > MOST_PAGES:
        found.append(f"looks at {plan.buffers} pages")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_pages_read_a_bounded_part_of_the_tables(month, admin_client, monkeypatch, kind):
    """With millions of rows a page that reads them all takes minutes (good_job#1532, rq-dashboard#396)."""
    wrong = []
    for name, requests in screens.pages(admin_client):
        if name.partition(".")[0] == kind:
            for request in requests():
                with explained(monkeypatch, *BIG) as plans:
                    request()
                wrong += [(name, fault, plan.statement[:2000]) for plan in plans for fault in faults(plan)]

    assert wrong == []
