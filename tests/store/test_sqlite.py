"""What is particular to SQLite."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, connections
from django.db.models.functions import Now

from django_workqueue.models import Job
from django_workqueue.store import store_for
from tests.factories import JobFactory

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def test_worker_begins_every_transaction_as_a_writer(store):
    """A transaction that reads first cannot be upgraded while another writes (Koed00/django-q#617)."""
    assert connection.transaction_mode == "IMMEDIATE"


def test_settings_of_the_project_are_told():
    """The system checks advise by them."""
    store = store_for()

    assert store.begins_as_writer()
    assert store.has_write_ahead_log()


def test_worker_mends_a_project_that_did_not_ask_for_writers(store, monkeypatch):
    """Its own transactions are right whatever the settings say."""
    wrapper = connections["default"]
    monkeypatch.setattr(wrapper, "transaction_mode", None)
    monkeypatch.setitem(wrapper.settings_dict["OPTIONS"], "transaction_mode", None)

    assert not store.begins_as_writer()
    store.prepare()
    assert connection.transaction_mode == "IMMEDIATE"


def test_stamps_have_microseconds(store):
    """SQLite's own clock stops at milliseconds, below the stored columns: new jobs would not be ready yet."""
    stamps = [store.insert([JobFactory.build(ready_at=Now(), enqueued_at=Now())])[0].job.ready_at for _ in range(20)]

    assert any(stamp.microsecond % 1000 for stamp in stamps)
    assert stamps == sorted(stamps)
    assert Job.objects.filter(ready_at__lte=store.now()).count() == 20


@pytest.mark.parametrize(
    ("name", "away"),
    [
        ("SQLITE_CANTOPEN", True),
        ("SQLITE_BUSY_SNAPSHOT", True),
        ("SQLITE_IOERR_READ", True),
        ("SQLITE_ERROR", False),
        ("SQLITE_FULL", False),
    ],
)
def test_missing_table_is_no_absence(store, name, away):
    """Forgotten migrations and a full disk need other remedies than a file that cannot be opened."""
    error = OperationalError("no such table, or a locked one")
    error.__cause__ = sqlite3.OperationalError()
    error.__cause__.sqlite_errorname = name

    assert store.is_unavailable(error) is away


def test_nobody_listens(store):
    """One machine polls."""
    assert not store.can_listen()
    assert abs(store.now() - store.clock()) < timedelta(minutes=1)
