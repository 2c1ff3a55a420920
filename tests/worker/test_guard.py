"""The guard of the dispatcher: a stuck dispatcher ends its process, a database that is away does not."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.db import OperationalError

from django_workqueue.store import store_for
from django_workqueue.worker.guard import Guard
from django_workqueue.worker.pulse import Pulse
from django_workqueue.worker.shutdown import StopRequest

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = timedelta(seconds=0.02)


class Post:
    """A guard beside a dispatcher whose last round is ten minutes ago."""

    def __init__(self) -> None:
        self.pulse, self.ended, self.left = Pulse(), StopRequest(), []
        self.store = store_for()
        self.guard = Guard(
            self.store,
            self.pulse,
            patience=PATIENCE,
            ended=self.ended,
            on_crash=lambda: None,
            leave=self.left.append,
        )
        self.pulse.beat()
        self.pulse._at -= 600


def test_stuck_dispatcher_ends_its_process(caplog):
    """With what every thread was at, for whoever has to find out."""
    post = Post()
    with caplog.at_level(logging.CRITICAL):
        post.guard.run()

    assert post.left == [1]
    assert "no round for 600 s although the database answers" in caplog.text
    assert "test_stuck_dispatcher_ends_its_process" in caplog.text


def test_database_that_is_away_is_waited_for(monkeypatch):
    """A restart would not bring it back."""
    post = Post()
    looks = []

    def away():
        looks.append(1)
        if len(looks) == 3:
            post.ended.request()
        raise OperationalError("connection refused")

    monkeypatch.setattr(post.store, "prepare", away)
    post.guard.run()

    assert post.left == []
    assert len(looks) == 3


def test_dispatcher_that_goes_on_meanwhile_is_not_stuck(monkeypatch):
    """The database answered late to both."""
    post = Post()

    def late():
        post.pulse._at += 10_000
        post.ended.request()

    monkeypatch.setattr(post.store, "prepare", late)
    post.guard.run()

    assert post.left == []
