"""Schedules under ``drain`` and ``advance``."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from django_workqueue.models import Job, Schedule
from django_workqueue.testing import advance, drain
from tests.factories import ScheduleFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def daily():
    """Make a schedule whose job tells its firing."""
    return ScheduleFactory(task="tests.samples.scheduled_for", args="[]", cron="0 3 * * *", zone="Europe/Berlin")


def firings(count):
    """Return the next firings of the schedule, as they would come without any test."""
    timing, moment, told = Schedule.objects.get().timing, timezone.now(), []
    for _ in range(count):
        moment = timing.next_after(moment)
        told.append(moment)
    return told


def test_time_passes_from_firing_to_firing(daily):
    """Each job is told its own day, at the very minute of the calendar."""
    expected = firings(5)

    attempts = drain(until=timedelta(days=5))

    assert [datetime.fromisoformat(attempt.result) for attempt in attempts] == expected


def test_time_adds_up_over_calls(daily):
    """Two days and three are five, whichever helper lets them pass."""
    expected = firings(5)

    told = [attempt.result for attempt in drain(until=timedelta(days=2))]
    for _ in range(3):
        advance(timedelta(days=1))
        told += [attempt.result for attempt in drain()]

    assert [datetime.fromisoformat(each) for each in told] == expected


def test_long_leap_is_an_outage(daily):
    """Without a drain on the way, what was missed is made up for by one job."""
    advance(timedelta(days=5))

    assert Job.objects.count() == 1
    (attempt,) = drain()
    assert datetime.fromisoformat(attempt.result) > timezone.now() + timedelta(days=3)


def test_no_time_passes_by_itself(daily):
    """A drain without ``until`` runs what is ready, and a schedule is not."""
    assert drain() == []


def test_switched_off_schedule_stays_silent(daily):
    """Switched by a plain update, as a test may do it."""
    Schedule.objects.update(enabled=False)

    assert drain(until=timedelta(days=5)) == []
