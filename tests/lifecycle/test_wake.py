"""Waking idle workers: once for a lane at a time, after the commit, and never worth an error."""

from __future__ import annotations

import logging

import pytest
from django.db import DatabaseError, transaction

from django_workqueue.lifecycle import wake as waking
from django_workqueue.lifecycle.wake import QUIET_SECONDS, notify, wake
from django_workqueue.store.base import BaseStore

LANE, OTHER = ("mail", "acme"), ("mail", "globex")


class LoudStore(BaseStore):
    """Remembers whom it woke."""

    def __init__(self) -> None:
        super().__init__("default")
        self.woken: list[set[tuple[str, str]]] = []

    def notify(self, lanes):
        """Note the lanes."""
        self.woken.append(set(lanes))


class DeafStore(BaseStore):
    """Cannot notify."""

    def notify(self, lanes):
        """Fail."""
        raise DatabaseError("the server went away")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Let the test set the time."""
    now = [1000.0]
    monkeypatch.setattr(waking.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(waking, "_notified", {})
    return now


def test_lane_is_not_woken_again_at_once(clock):
    """A thousand enqueues in a loop are not a thousand notifications."""
    store = LoudStore()
    for _ in range(10):
        notify(store, {LANE})
    clock[0] += QUIET_SECONDS * 1.01
    notify(store, {LANE})

    assert store.woken == [{LANE}, {LANE}]


def test_other_lanes_are_woken_all_the_same():
    """One lane's noise does not silence another."""
    store = LoudStore()
    notify(store, {LANE})
    notify(store, {LANE, OTHER})

    assert store.woken == [{LANE}, {OTHER}]


def test_memory_of_lanes_is_bounded(monkeypatch):
    """A project may have very many tenants."""
    monkeypatch.setattr(waking, "_MOST_REMEMBERED", 5)
    for number in range(20):
        notify(LoudStore(), {("mail", str(number))})

    assert len(waking._notified) <= 6


def test_failed_notification_is_logged_only(caplog):
    """The jobs are stored, and polling finds them."""
    with caplog.at_level(logging.WARNING):
        notify(DeafStore("default"), {LANE})

    assert "find the jobs when they poll" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_workers_are_woken_after_the_commit():
    """Inside the transaction it would hold a lock that serialises every commit of the cluster."""
    store = LoudStore()
    with transaction.atomic():
        wake(store, {LANE})
        assert store.woken == []

    assert store.woken == [{LANE}]


@pytest.mark.django_db(transaction=True)
def test_nobody_is_woken_for_a_rollback():
    """There is nothing to find."""
    store = LoudStore()
    with transaction.atomic():
        wake(store, {LANE})
        transaction.set_rollback(True)

    assert store.woken == []


@pytest.mark.django_db(transaction=True)
def test_no_lanes_are_no_hook():
    """A batch of duplicates, say."""
    store = LoudStore()
    wake(store, set())

    assert store.woken == []
