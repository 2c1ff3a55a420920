"""What every statement stands on: one clock, one connection, transactions, and telling absence from error."""

from __future__ import annotations

import logging
from datetime import timedelta
from threading import Thread

import pytest
from django.db import Error, InterfaceError, OperationalError, ProgrammingError, connection, connections, transaction

from django_workqueue.exceptions import QueueUnavailableError
from django_workqueue.models import Job
from django_workqueue.models.base import Literal
from django_workqueue.store import Store, store_for
from django_workqueue.store.base import BaseStore
from tests.claims import claim_one
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db


def test_store_is_that_of_the_databases_vendor():
    """Callers name an alias and never a vendor."""
    made = store_for("default")

    assert type(made).__name__ == {"postgresql": "PostgresStore", "sqlite": "SqliteStore"}[connection.vendor]
    assert isinstance(made, Store)


def test_store_is_on_the_configured_database(settings):
    """WORKQUEUE['DATABASE'] names the alias for those who do not."""
    settings.WORKQUEUE = {"DATABASE": "elsewhere"}

    with pytest.raises(Exception, match="elsewhere"):
        store_for()


def test_unknown_vendor_gets_the_store_in_the_orm(monkeypatch):
    """Right on any database, if not fast."""
    monkeypatch.setattr(connections["default"], "vendor", "oracle")

    assert type(store_for()) is Store


def test_store_in_the_orm_does_the_whole_job(db):
    """The base that both vendors' stores extend works by itself."""
    plain = Store("default")
    plain.prepare()
    JobFactory()
    JobFactory(scheduled=True)

    job = claim_one(plain)
    assert plain.renew({job.lease_id: timedelta(seconds=30)}) == {job.lease_id}
    assert plain.promote() == set()
    assert plain.next_due() > timedelta(minutes=59)
    assert plain.release(job.lease_id, [job.id], last=True).ids == {job.id}
    assert plain.ready_queues() == ["default"]
    assert (plain.can_listen(), plain.notify({("default", "")})) == (False, None)
    with pytest.raises(NotImplementedError, match="no notifications"), plain.listening():
        pass


def test_clock_moves_within_a_transaction(store):
    """A transaction's start is no measure: a job made in it would never be ready."""
    with transaction.atomic():
        first = store.now()
        JobFactory(ready_at=store.now())
        assert claim_one(store)
        assert store.now() > first


def test_preparing_again_is_not_a_new_connection(store):
    """A worker searches for lost claims after each new one, and after no other round."""
    assert store.prepare() is False


@pytest.mark.django_db(transaction=True)
def test_broken_connection_is_replaced_and_reported(store):
    """The worker learns that it must distrust what was under way."""
    connection.close()

    assert store.prepare() is True
    assert store.prepare() is False


@pytest.mark.django_db(transaction=True)
def test_each_thread_has_a_connection_of_its_own(store):
    """A store that is used by two threads is two sessions."""
    seen = []

    def look():
        store.now()
        seen.append(store.connection)
        connections.close_all()

    thread = Thread(target=look)
    thread.start()
    thread.join()

    assert seen[0] is not store.connection


def test_literal_is_written_into_the_text():
    """A bound parameter cannot prove a partial index."""
    text, parameters = str(Job.objects.filter(state=Literal("ready")).query), Literal("ready").as_sql()

    assert "'ready'" in text
    assert parameters == ("'ready'", ())


@pytest.mark.parametrize("word", ["it's", "a b", "", "x;--", "1"])
def test_literal_refuses_what_is_no_word(word):
    """It is for our own names, never for data."""
    with pytest.raises(ValueError, match="not a word"):
        Literal(word).as_sql()


@pytest.mark.django_db(transaction=True)
def test_error_after_the_commit_is_logged_and_harmless(store, caplog):
    """The job is stored by then; waking somebody is worth no exception."""

    def broken():
        raise RuntimeError("no network")

    with caplog.at_level(logging.ERROR), transaction.atomic():
        store.on_commit(broken)

    assert "no network" in caplog.text


def test_programming_error_is_not_an_absence(store):
    """Only what says that the database is away is called so."""
    with pytest.raises(ProgrammingError), store.reachable("enqueue"):
        raise ProgrammingError("no such column")


@pytest.mark.parametrize("error", [OperationalError("could not connect"), InterfaceError("connection already closed")])
def test_absence_is_named_with_the_operation_and_the_database(error):
    """The caller can tell its own users."""
    with pytest.raises(QueueUnavailableError) as caught, BaseStore("default").reachable("enqueue"):
        raise error

    assert (caught.value.operation, caught.value.database) == ("enqueue", "default")
    assert caught.value.__cause__ is error
    assert isinstance(error, Error)


def test_query_log_of_a_workers_own_thread_does_not_grow(settings):
    """With DEBUG on, Django keeps every statement until a request ends (Uninett/nav#97)."""
    settings.DEBUG = True
    store = store_for()
    for _ in range(10):
        store.prepare()
        Job.objects.exists()

    assert len(connection.queries_log) == 1
