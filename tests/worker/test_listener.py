"""The listener: hears of new jobs, and notices when it no longer does."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager

import pytest
from django.db import connection

from django_workqueue.store import store_for
from django_workqueue.worker import listener as module
from django_workqueue.worker.lanes import News
from django_workqueue.worker.listener import Listener
from django_workqueue.worker.shutdown import StopRequest
from django_workqueue.worker.thread import Backoff
from tests import samples

from .jobs import running, wait_until

END_LISTENERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid() AND datname = current_database()
"""


class FakeEar:
    """Says what the test lets it hear; ``deaf`` ears do not hear their own probes."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.deaf = deaf
        self.messages: list = []
        self.probes = 0

    def hear(self, _seconds):
        """Yield what there is."""
        time.sleep(0.001)
        while self.messages:
            message = self.messages.pop(0)
            if isinstance(message, Exception):
                raise message
            yield message

    def probe(self):
        """Answer, or not."""
        self.probes += 1
        if not self.deaf:
            self.messages.append(None)

    def cut(self):
        """Break the connection."""


class FakeStore:
    """Hands out ears, one after the other."""

    def __init__(self, *ears) -> None:
        self.ears = list(ears)
        self.opened = 0

    @contextmanager
    def listening(self):
        """Open the next ear; the last one stays."""
        self.opened += 1
        ear = self.ears.pop(0) if len(self.ears) > 1 else self.ears[0]
        if isinstance(ear, Exception):
            raise ear
        yield ear


class Listening:
    """A listener with its surroundings."""

    def __init__(self, store) -> None:
        self.news, self.ended, self.wakes, self.calls, self.crashes = News(), StopRequest(), [], [], []
        self.thread = Listener(
            store,
            news=self.news,
            wake=lambda: self.wakes.append(1),
            cancel_call=self.calls.extend,
            ended=self.ended,
            on_crash=lambda: self.crashes.append(1),
        )

    def __enter__(self):
        """Start."""
        self._running = running(self.thread, self.ended.request)
        self._running.__enter__()
        return self

    def __exit__(self, *details):
        """End, and state that nothing crashed."""
        self._running.__exit__(*details)
        assert self.crashes == []


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(Backoff, "failed", lambda self: 0.0)


def test_lanes_are_passed_on_and_the_dispatcher_is_woken():
    """At once."""
    ear = FakeEar()
    with Listening(FakeStore(ear)) as listening:
        ear.messages.append({("mail", "acme")})
        wait_until(lambda: listening.news.lanes, "the lane is among the news")
        assert listening.wakes

    assert list(listening.news.lanes) == [("mail", "acme")]


@pytest.mark.parametrize("error", [OSError("connection reset"), ValueError("not what a driver should raise")])
def test_broken_connection_is_opened_again(caplog, error):
    """It drops once and is renewed (taskforcesh/bullmq#4729)."""
    first, second = FakeEar(), FakeEar()
    first.messages.append(error)
    store = FakeStore(first, second)
    with caplog.at_level(logging.WARNING), Listening(store) as listening:
        second.messages.append({("mail", "")})
        wait_until(lambda: listening.news.lanes, "heard on the second connection")

    assert store.opened == 2
    assert "polling goes on" in caplog.text


def test_server_that_is_away_is_tried_again():
    """Until it is there."""
    ear = FakeEar()
    ear.messages.append({("mail", "")})
    store = FakeStore(OSError("refused"), OSError("refused"), ear)
    with Listening(store) as listening:
        wait_until(lambda: listening.news.lanes, "heard at last")

    assert store.opened == 3


def test_dispatcher_knows_whether_anybody_hears():
    """It looks more seldom while somebody does, and at once when something may have been missed."""
    broken, fine = FakeEar(), FakeEar()
    with Listening(FakeStore(broken, fine)) as listening:
        wait_until(lambda: listening.news.hearing, "the listener hears")
        assert listening.news.missed
        listening.news.missed = False
        fine.messages.append({("mail", "")})
        broken.messages.append(OSError("reset"))
        wait_until(lambda: listening.news.lanes, "heard on the second connection")

    assert listening.news.missed


def test_listener_that_hears_its_probe_stays(monkeypatch):
    """The connection is fine, only nothing happens."""
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.0)
    ear = FakeEar()
    store = FakeStore(ear)
    with Listening(store):
        wait_until(lambda: ear.probes > 3, "some probes")

    assert store.opened == 1


def test_listener_that_does_not_hear_its_probe_connects_again(monkeypatch, caplog):
    """A dropped connection may stay silent for days (hangfire-postgres/Hangfire.PostgreSql#410)."""
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.02)
    fine = FakeEar()
    fine.messages.append({("mail", "")})
    with caplog.at_level(logging.WARNING), Listening(FakeStore(FakeEar(deaf=True), fine)) as listening:
        wait_until(lambda: listening.news.lanes, "heard on the second connection")

    assert "does not hear its own probe" in caplog.text


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_enqueue_is_heard_over_a_real_connection():
    """From the commit to the news of the worker."""
    with Listening(store_for()) as listening:
        wait_until(lambda: listening.news.hearing, "the listener hears")
        samples.send.enqueue("a@example.com")
        wait_until(lambda: listening.news.lanes, "the lane is among the news")

    assert list(listening.news.lanes) == [("mail", "acme")]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_ended_backend_is_replaced():
    """An administrator ends it; the next enqueue is heard."""
    with Listening(store_for()) as listening:
        wait_until(lambda: listening.news.hearing, "the listener hears")
        with connection.cursor() as cursor:
            cursor.execute(END_LISTENERS)
            assert cursor.rowcount == 1
        listening.news.missed = False
        wait_until(lambda: listening.news.missed and listening.news.hearing, "it hears again")
        samples.add.using(tenant="later").enqueue(1, 2)
        wait_until(lambda: ("default", "later") in listening.news.lanes, "the lane is among the news")
