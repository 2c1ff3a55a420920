"""Rows that the server makes by itself must be those that the package would have stored."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection

from django_workqueue.models import FinishedJob, Job
from testproject.benchmarks.actors.sqlite_fill import jobs_of
from testproject.benchmarks.database import Database
from testproject.benchmarks.rows import Rows
from testproject.benchmarks.tasks import noop

pytestmark = pytest.mark.django_db(transaction=True)

#: What differs between any two jobs.
OWN = {"id", "args", "enqueued_at", "ready_at", "rank"}


@pytest.fixture
def database():
    """Return the test's database as the benchmark would see it."""
    made = Database("postgres://localhost/unused")
    made._entry = connection.settings_dict
    yield made
    made.close()


def columns(job):
    """Return what equal jobs have in common."""
    return {each.attname: getattr(job, each.attname) for each in Job._meta.concrete_fields if each.attname not in OWN}


@pytest.mark.postgresql
def test_backlog_is_what_enqueue_would_store(database):
    """A column that the filling forgets would make the measured queue another one."""
    noop.enqueue(1)
    enqueued = Job.objects.get()
    rows = Rows(count=3, task=noop.module_path)

    rows.insert_ready(database)

    made = Job.objects.get(args="[1]", pk=rows.id(1))
    assert columns(made) == columns(enqueued)
    assert made.ready_at < enqueued.ready_at


@pytest.mark.postgresql
def test_ids_follow_from_numbers_and_ascend(database):
    """The watch looks up single rows of a million without having read them, and their order is that of arrival."""
    rows = Rows(count=500, task=noop.module_path)

    rows.insert_ready(database)

    stored = list(Job.objects.order_by("ready_at", "id").values_list("id", "args"))
    assert stored == [(rows.id(number), f"[{number}]") for number in range(1, 501)]
    assert {pk.version for pk, _ in stored} == {7}


@pytest.mark.postgresql
def test_tenants_get_equal_shares_in_turn(database):
    """A lane that had more than the others would be drained last and alone."""
    Rows(count=300, task=noop.module_path, tenants=100).insert_ready(database)

    shares = Counter(Job.objects.values_list("tenant", flat=True))

    assert len(shares) == 100
    assert set(shares.values()) == {3}


@pytest.mark.postgresql
def test_history_is_kept_and_apart_from_the_backlog(database):
    """Rows that were due would be pruned in the middle of a drain."""
    jobs = Rows(count=5, task=noop.module_path)
    jobs.insert_ready(database)

    Rows(count=5, task=noop.module_path, first=6).insert_finished(database)

    assert (
        FinishedJob.objects.filter(outcome="succeeded", expires_at__gt=Job.objects.latest("ready_at").ready_at).count()
        == 5
    )
    assert not set(FinishedJob.objects.values_list("id", flat=True)) & set(Job.objects.values_list("id", flat=True))


def test_orm_makes_the_same_backlog():
    """SQLite is filled by other means, with the same ids."""
    rows = Rows(count=20, task=noop.module_path)

    Job.objects.bulk_create(jobs_of(rows))
    noop.enqueue(1)

    made, enqueued = Job.objects.get(pk=rows.id(1)), Job.objects.exclude(pk__in=map(rows.id, range(1, 21))).get()
    assert columns(made) == columns(enqueued)
