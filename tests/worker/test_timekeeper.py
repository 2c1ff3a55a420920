"""How often a worker looks at the schedules."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_workqueue.models import Job, Schedule
from django_workqueue.worker import timekeeper as module
from django_workqueue.worker.timekeeper import Timekeeper
from tests.factories import ScheduleFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch):
    """Stop the process's own clock; it goes on when its only member is changed."""
    hands = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: hands[0])
    return hands


def test_without_schedules_one_statement_in_ten_seconds(store, clock):
    """What is not used must cost next to nothing."""
    keeper = Timekeeper(store)
    assert keeper.look() == (set(), module.NONE_SECONDS)

    clock[0] += module.NONE_SECONDS
    with CaptureQueriesContext(
        connection,
    ) as statements:
        keeper.look()
        keeper.look()

    assert len(statements) == 1


def test_sleeps_until_the_next_firing(store, clock):
    """Or until the next review, whichever comes first."""
    ScheduleFactory(cron="", interval=timedelta(hours=1), created_at=timezone.now())
    keeper = Timekeeper(store)

    assert keeper.look() == (set(), module.REVIEW_SECONDS)

    Schedule.objects.update(next_at=timezone.now() + timedelta(seconds=2))
    _, wait = keeper.look()
    assert 0 < wait <= 2


def test_due_schedule_fires_and_is_told(store, clock):
    """The dispatcher need not wait for a notification, and there may be more to do at once."""
    ScheduleFactory(queue="mail", due=True)

    assert Timekeeper(store).look() == ({("mail", "")}, 0.0)

    assert Job.objects.count() == 1


def test_edit_is_seen_within_the_next_review(store, clock):
    """Also one of a worker that knows of nothing to do for an hour (celery/django-celery-beat#37)."""
    row = ScheduleFactory(cron="", interval=timedelta(hours=1), created_at=timezone.now())
    keeper = Timekeeper(store)
    keeper.look()
    Schedule.objects.filter(pk=row.pk).update(interval=timedelta(seconds=1), created_at=timezone.now())

    clock[0] += module.REVIEW_SECONDS
    _, wait = keeper.look()

    assert wait <= 1


def test_schedules_that_are_all_off_cost_a_review_and_no_more(store, clock):
    """There is nothing to be due."""
    ScheduleFactory(enabled=False)
    keeper = Timekeeper(store)
    keeper.look()
    clock[0] += module.REVIEW_SECONDS

    with CaptureQueriesContext(connection) as statements:
        keeper.look()

    assert len(statements) == 1


def test_due_schedule_in_other_hands_is_looked_at_again_soon(store, clock, monkeypatch):
    """A person may hold the row for an hour, or another worker for an instant."""
    ScheduleFactory(due=True)
    monkeypatch.setattr(type(store), "hold_schedule", lambda self, pk: None)

    assert Timekeeper(store).look() == (set(), module.LOCKED_SECONDS)


def test_code_is_registered_once(store, clock, monkeypatch):
    """At the first look, and again only if that failed."""
    calls = []

    def flaky(_store):
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError

    monkeypatch.setattr(module, "register", flaky)
    keeper = Timekeeper(store)
    with pytest.raises(ZeroDivisionError):
        keeper.look()
    keeper.look()
    keeper.look()

    assert len(calls) == 2
