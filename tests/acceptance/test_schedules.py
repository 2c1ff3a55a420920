"""Schedules under many workers: every firing once, through changes of clocks, edits and kills."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.db import connections
from django.db.models import F
from django.utils import timezone

from django_workqueue.domain.context import SCHEDULE, SCHEDULED_FOR
from django_workqueue.lifecycle.reschedule import keep
from django_workqueue.lifecycle.schedule import review, tick
from django_workqueue.models import FinishedJob, Job, Schedule
from django_workqueue.store import store_for

from .harness import disguised, settings, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]

FIRING = "tests.acceptance.tasks.record_firing"
#: Every firing is another job, whatever became of the one before.
EVERY = {"task": FIRING, "catch_up": "all", "overlap": "allow", "zone": "UTC"}
QUARTER, HOUR = timedelta(minutes=15), timedelta(hours=1)


def utc(text):
    """Return a moment of 2026 in UTC."""
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


def evenly(first, until, step):
    """Return the moments from ``first`` to before ``until``, each a step after the last, as the diary has them."""
    return [f"{first + number * step:%m-%d %H:%M:%S}" for number in range((until - first) // step)]


#: Berlin's days with 23 and with 25 hours, and when each schedule fires in them by UTC, worked out by hand.
SHORT_DAY, LONG_DAY = (utc("03-28 23:00"), utc("03-29 22:00")), (utc("10-24 22:00"), utc("10-25 23:00"))
SCHEDULES = {
    "at-0205": {"cron": "5 2 * * *", "zone": "Europe/Berlin"},
    "at-0230": {"cron": "30 2 * * *", "zone": "Europe/Berlin"},
    "quarters": {"cron": "*/15 * * * *", "zone": "Europe/Berlin"},
    "madrid": {"cron": "30 9 * * *", "zone": "Europe/Madrid"},
    "chicago": {"cron": "30 9 * * *", "zone": "America/Chicago"},
    "auckland": {"cron": "30 9 * * *", "zone": "Pacific/Auckland"},
}
EXPECTED = {
    SHORT_DAY: {
        "at-0205": ["03-29 01:00:00"],
        "at-0230": ["03-29 01:00:00"],
        "quarters": evenly(*SHORT_DAY, QUARTER),
        "madrid": ["03-29 07:30:00"],
        "chicago": ["03-29 14:30:00"],
        "auckland": ["03-29 20:30:00"],
        "hours": evenly(*SHORT_DAY, HOUR),
    },
    LONG_DAY: {
        "at-0205": ["10-25 00:05:00"],
        "at-0230": ["10-25 00:30:00"],
        "quarters": evenly(*LONG_DAY, QUARTER),
        "madrid": ["10-25 08:30:00"],
        "chicago": ["10-25 14:30:00"],
        "auckland": ["10-25 20:30:00"],
        "hours": evenly(*LONG_DAY, HOUR),
    },
}


def schedule_day(begin, end):
    """Make the schedules of one day, for which it is the minute before the day begins."""
    skew = begin - timedelta(minutes=1) - timezone.now()
    last = end - timedelta(seconds=1)
    for name, times in {**SCHEDULES, "hours": {"interval": HOUR}}.items():
        Schedule.objects.create(**EVERY | {"name": name, "skew": skew, "starts_at": begin, "ends_at": last} | times)
    review(store_for())


@contextmanager
def tickers(count):
    """Let threads tick without pause, beside the workers, and tell afterwards what went wrong in them."""
    ended, errors = threading.Event(), []

    def run():
        try:
            store = store_for()
            store.prepare()
            while not ended.is_set():
                review(store)
                tick(store)
                ended.wait(0.002)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert errors == []


def pass_to_next_firing(store):
    """Let time pass for the schedules alone, once nothing is due; False when none will fire any more."""
    wait_until(lambda: all(each.wait > timedelta() for each in store.upcoming_schedules()), "all due to be fired")
    upcoming = store.upcoming_schedules(limit=1)
    if not upcoming:
        return False
    step = max(upcoming[0].wait, timedelta(milliseconds=1))
    Schedule.objects.filter(next_at__isnull=False).update(next_at=F("next_at") - step, skew=F("skew") + step)
    return True


@pytest.mark.parametrize("day", EXPECTED, ids=["23 hours", "25 hours"])
def test_day_of_a_change_of_clocks_has_exactly_its_firings(fleet, diary, day):
    """Four workers, three tickers beside them: the list, no more and no less (celery/celery#1604, steady-queue#52)."""
    schedule_day(*day)
    fleet.start_many(4, "--concurrency", "2", **settings(lease=30))
    store = store_for()

    with tickers(3):
        while pass_to_next_firing(store):
            pass
    expected = sorted(f"{name} {moment}" for name, moments in EXPECTED[day].items() for moment in moments)
    wait_until(lambda: len(diary.starts()) >= len(expected) and not Job.objects.exists(), "all jobs to run", seconds=60)

    assert sorted(entry.note for entry in diary.starts()) == expected
    assert fleet.complaints == []


def test_each_firing_is_one_job_while_workers_are_killed(fleet, diary):
    """Whoever dies while it ticks has done all of it or nothing: no firing is lost, and none comes twice."""
    draw, names = random.Random(17), [f"second-{number}" for number in range(4)]
    for name in names:
        Schedule.objects.create(**EVERY | {"name": name, "interval": timedelta(seconds=1)})
    lease = settings(lease=2)
    fleet.start_many(4, "--concurrency", "2", **lease)

    for _ in range(10):
        time.sleep(draw.uniform(0.2, 1.0))  # the time of a kill is to have nothing to do with that of a firing
        alive = [worker for worker in fleet.workers if worker.exit_code is None]
        draw.choice(alive).kill()
        fleet.start("--concurrency", "2", ready=len(alive) == 1, **lease)
    Schedule.objects.update(ends_at=timezone.now())
    wait_until(lambda: not Job.objects.exists(), "all jobs to end", seconds=60)
    wait_until(lambda: not store_for().upcoming_schedules(), "all schedules to be over", seconds=30)

    fired = Counter()
    for name in names:
        metadata = [job.decoded_metadata for job in FinishedJob.objects.all()]
        moments = sorted(each[SCHEDULED_FOR] for each in metadata if each[SCHEDULE] == name)
        seconds = [datetime.fromisoformat(each) for each in moments]
        fired[name] = len(moments)
        assert {b - a for a, b in pairwise(seconds)} == {timedelta(seconds=1)}
    assert min(fired.values()) >= 2


def test_edits_hold_while_workers_run(fleet, diary):
    """One is made to fire soon, another is switched off, by plain updates (celery/django-celery-beat#37, #42)."""
    for name in ("daily", "busy"):
        interval = timedelta(days=1) if name == "daily" else timedelta(seconds=1)
        keep(Schedule(name=name, task=FIRING, overlap="allow", zone="UTC", interval=interval))
    fleet.start_many(2, **settings(lease=30))
    wait_until(lambda: any("busy" in entry.note for entry in diary.starts()), "the busy one to fire")

    Schedule.objects.filter(name="busy").update(enabled=False)
    Schedule.objects.filter(name="daily").update(interval=timedelta(seconds=1))
    wait_until(lambda: any("daily" in entry.note for entry in diary.starts()), "the daily one to fire by its new times")
    wait_until(lambda: Schedule.objects.filter(name="busy", next_at=None).exists(), "the other to be off")

    count = sum("busy" in entry.note for entry in diary.starts())
    so_far = sum("daily" in entry.note for entry in diary.starts())
    wait_until(lambda: sum("daily" in entry.note for entry in diary.starts()) > so_far + 2, "some more firings")
    assert sum("busy" in entry.note for entry in diary.starts()) <= count + 1


def test_schedules_of_the_code_are_there_when_a_worker_starts(fleet, diary):
    """Nothing else need be run, and a bad line beside it stops nobody (certimate#906)."""
    good = {"TASK": FIRING, "INTERVAL": 1}
    fleet.start("--skip-checks", **settings(lease=30, schedules={"good": good, "bad": good | {"CRON": "61 * * * *"}}))

    wait_until(lambda: len(diary.starts()) >= 2, "the good one to fire")

    assert {entry.note.split()[0] for entry in diary.starts()} == {"good"}
    assert any("'bad'" in line for line in fleet.complaints)


@pytest.mark.postgresql
@pytest.mark.parametrize("minutes", [10, -10])
def test_worker_with_a_wrong_clock_fires_nothing_early_or_late(fleet, diary, minutes):
    """Dueness is the database's to judge (kagkarlsson/db-scheduler#433)."""
    keep(Schedule(name="second", task=FIRING, overlap="allow", zone="UTC", interval=timedelta(seconds=1)))
    keep(Schedule(name="later", task=FIRING, overlap="allow", zone="UTC", interval=timedelta(minutes=5)))
    fleet.start(program=disguised(f"clock={minutes * 60}"), **settings(lease=30))

    wait_until(lambda: len(diary.starts()) >= 3, "some firings")

    assert {entry.note.split()[0] for entry in diary.starts()} == {"second"}
