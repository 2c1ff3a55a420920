"""Enqueue in the caller's transaction: seen when it is committed, gone when it is rolled back, never in its way."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, connections, transaction

from django_workqueue.exceptions import PayloadError, QueueUnavailableError, WorkQueueError
from django_workqueue.models import Job
from django_workqueue.store import store_for
from tests import samples
from tests.claims import claim

transactional = pytest.mark.django_db(transaction=True)


def seen_elsewhere() -> int:
    """Return how many jobs another connection can claim."""
    claimed = []

    def look() -> None:
        elsewhere = store_for()
        elsewhere.prepare()
        claimed.append(len(elsewhere.lanes("default")))
        connections.close_all()

    thread = Thread(target=look)
    thread.start()
    thread.join(30)
    return claimed[0]


@transactional
def test_job_is_invisible_before_the_commit_and_there_after_it():
    """A worker must not run a job whose business row is not there yet (RealOrangeOne/django-tasks-rq#11)."""
    with transaction.atomic():
        Group.objects.create(name="order")
        samples.add.enqueue(1, 2)
        before = seen_elsewhere()

    assert (before, seen_elsewhere()) == (0, 1)


@transactional
def test_rollback_takes_the_job_with_it():
    """An order that was never placed has no receipt (freelawproject/courtlistener PR#3290)."""
    with transaction.atomic():
        samples.add.enqueue(1, 2)
        samples.add.using(run_after=timedelta(hours=1)).enqueue(1, 2)
        samples.bill.enqueue(7)
        transaction.set_rollback(True)

    assert Job.objects.count() == 0


@transactional
def test_savepoint_that_is_rolled_back_takes_its_own_job_only():
    """The outer block's job stays, the inner one's goes."""
    with transaction.atomic():
        outer = samples.add.enqueue(1, 2)
        with transaction.atomic():
            samples.add.enqueue(3, 4)
            transaction.set_rollback(True)

    assert [str(pk) for pk in Job.objects.values_list("pk", flat=True)] == [outer.id]


@transactional
def test_rolled_back_key_is_free():
    """A key that was never committed blocks nobody."""
    with transaction.atomic():
        samples.bill.enqueue(7)
        transaction.set_rollback(True)

    assert not samples.bill.enqueue(7).duplicate


@pytest.mark.django_db
def test_transaction_stays_usable_after_a_clash():
    """The caller goes on and commits (procrastinate-org/procrastinate#981)."""
    first = samples.bill.enqueue(7)

    with transaction.atomic():
        second = samples.bill.enqueue(7)
        Group.objects.create(name="after")

    assert (second.id, second.duplicate) == (first.id, True)
    assert Group.objects.filter(name="after").exists()
    assert Job.objects.count() == 1


@pytest.mark.django_db
def test_transaction_stays_usable_after_a_refusal():
    """What is refused at the door has not touched the database (hardbyte/awa#85)."""
    with transaction.atomic():
        with pytest.raises(PayloadError):
            samples.return_it.enqueue("a\x00b")
        Group.objects.create(name="after")

    assert Group.objects.filter(name="after").exists()


@pytest.mark.django_db
def test_batch_with_clashes_stores_the_rest_and_reports_them():
    """One clash does not spoil the batch (maxcountryman/underway#38)."""
    samples.bill.enqueue(1)
    samples.bill.enqueue(3)

    results = samples.bill.enqueue_many([(number,) for number in (0, 1, 2, 3, 2)])

    assert [result.duplicate for result in results] == [False, True, False, True, True]
    assert results[4].id == results[2].id
    assert Job.objects.count() == 4


@pytest.mark.django_db
def test_large_batch_is_stored_in_few_statements(django_assert_max_num_queries):
    """Thousands of jobs are not thousands of statements, nor too many parameters for one (rails/solid_queue PR#93)."""
    calls = [(number, 0) for number in range(2500)]

    with django_assert_max_num_queries(60):
        results = samples.add.enqueue_many(calls)

    assert [result.args for result in results] == [list(call) for call in calls]
    assert Job.objects.count() == 2500


@pytest.mark.django_db
def test_order_of_a_batch_is_the_order_of_its_run(store):
    """First in, first out holds within one statement."""
    results = samples.add.enqueue_many([(number, 0) for number in range(30)])

    assert [str(job.id) for job in claim(store, limit=30, quantum=30)] == [result.id for result in results]


@transactional
@pytest.mark.parametrize("task", [samples.return_it, samples.bill], ids=["plain", "keyed"])
def test_batch_that_fails_half_way_leaves_nothing(task, monkeypatch):
    """Without a transaction of the caller's the batch has one of its own."""
    assembled = []

    def one_that_no_database_takes(common, **columns):
        assembled.append(columns)
        if len(assembled) == 1400:
            columns["priority"] = 101
        return Job(**common | columns)

    monkeypatch.setattr(Job, "assemble", one_that_no_database_takes)
    # SQLite passes over what breaks a constraint beside a key that clashes, and the row is missed afterwards.
    with pytest.raises((IntegrityError, WorkQueueError)):
        task.enqueue_many([(number,) for number in range(1500)])

    assert len(assembled) == 1500
    assert Job.objects.count() == 0


@pytest.mark.django_db
def test_enqueue_inside_a_test_case_stores_a_row_that_can_be_claimed(store):
    """Suites that wrap each test in a transaction see their jobs (wagtail/wagtail PR#12787)."""
    assert connection.in_atomic_block
    result = samples.add.enqueue(1, 2)

    assert [str(job.id) for job in claim(store)] == [result.id]


# -- a database that is away ------------------------------------------------------------------------------------------


@pytest.fixture
def unreachable():
    """Point the default alias to where no database answers; on_commit and transactions are the test's own."""
    wrapper = connections["default"]
    wrapper.close()
    saved = dict(wrapper.settings_dict)
    nowhere = "/nowhere/at/all" if wrapper.vendor == "postgresql" else saved["HOST"]
    name = saved["NAME"] if wrapper.vendor == "postgresql" else "/nowhere/at/all/db.sqlite3"
    wrapper.settings_dict.update(HOST=nowhere, NAME=name)
    yield wrapper
    wrapper.close()
    wrapper.settings_dict.update(saved)


ENQUEUES = {
    "plain": lambda: samples.add.enqueue(1, 2),
    "deferred": lambda: samples.add.using(run_after=timedelta(seconds=5)).enqueue(1, 2),
    "keyed": lambda: samples.bill.enqueue(7),
    "batch": lambda: samples.add.enqueue_many([(1, 2), (3, 4)]),
    "large batch": lambda: samples.add.enqueue_many([(1, 2)] * 100),
    "keyed batch": lambda: samples.bill.enqueue_many([(1,), (2,)]),
}


@transactional
@pytest.mark.parametrize("name", ENQUEUES)
def test_unreachable_database_raises_and_says_so(unreachable, name):
    """An enqueue is stored or it raises; there is no third way."""
    with pytest.raises(QueueUnavailableError, match="Nothing was stored") as caught:
        ENQUEUES[name]()

    assert (caught.value.operation, caught.value.database) == ("enqueue", "default")
    assert caught.value.retryable
    assert caught.value.__cause__ is not None


@transactional
def test_missing_table_is_not_called_an_unreachable_database(monkeypatch):
    """A project that forgot to migrate is told so by the database's own error."""
    monkeypatch.setattr(Job._meta, "db_table", "no_such_table")

    with pytest.raises(Exception, match="no_such_table") as caught:
        samples.add.enqueue(1, 2)

    assert not isinstance(caught.value, QueueUnavailableError)
