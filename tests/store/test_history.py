"""What is over costs nothing any more: claims and statistics beside 200,000 finished jobs."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import pytest
from django.db import connection

from django_workqueue.models import FinishedJob, Job
from tests.claims import claim
from tests.factories import DeadLetterFactory, JobFactory, QueueMinuteFactory, WorkerFactory
from tests.filling import fill_finished

from .explaining import explained

pytestmark = pytest.mark.django_db

HISTORY = 200_000
STEPS = 100
"""SQLite reports after so many instructions of its machine."""


@pytest.fixture
def cost(monkeypatch):
    """Return a function that tells what an act costs: pages on PostgreSQL, instructions on SQLite."""
    meter = {"postgresql": pages, "sqlite": instructions}[connection.vendor]

    def measured(act) -> int:
        with meter(monkeypatch) as spent:
            act()
        return spent.total()

    return measured


@contextmanager
def pages(monkeypatch):
    """Count the pages that every statement on jobs, live or finished, looks at."""
    spent = Counter()
    with explained(monkeypatch, Job._meta.db_table, FinishedJob._meta.db_table) as plans:
        yield spent
    spent["pages"] = sum(plan.buffers for plan in plans)


@contextmanager
def instructions(_monkeypatch):
    """Count the instructions that SQLite carries out."""
    spent = Counter()

    def count():
        spent["instructions"] += STEPS

    connection.connection.set_progress_handler(count, STEPS)
    try:
        yield spent
    finally:
        connection.connection.set_progress_handler(None, STEPS)


@pytest.fixture
def backlog(store):
    """Store some jobs of a few tenants and levels."""
    Job.objects.bulk_create(
        JobFactory.build(tenant=f"t{number % 5}", priority=number % 3, queue=("default", "mail")[number % 2])
        for number in range(1000)
    )
    DeadLetterFactory.create_batch(3)
    WorkerFactory.create_batch(3)
    return store


def test_claim_costs_the_same_with_a_long_history(backlog, cost):
    """Finished jobs lie elsewhere (RealOrangeOne/django-tasks#140)."""

    def act():
        assert len(claim(backlog, "t0", "t1", "t2", limit=30)) == 30

    act()
    before = cost(act)
    fill_finished(HISTORY)
    after = cost(act)

    assert before > 0
    assert after <= before * 1.2


def test_statistics_cost_the_same_with_a_long_history(backlog, cost, django_assert_max_num_queries):
    """Neither finished jobs nor minutes are counted (hexpm/hexpm PR#1773)."""

    def act():
        assert {row.queue for row in backlog.stats(lambda name: 1)} == {"default", "mail"}

    before = cost(act)
    fill_finished(HISTORY)
    QueueMinuteFactory.create_batch(50)
    after = cost(act)

    assert before > 0
    assert after <= before * 1.2
    with django_assert_max_num_queries(80 if connection.vendor == "sqlite" else 10):
        act()
