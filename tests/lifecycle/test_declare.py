"""Schedules in code, on their way into the rows."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from django_workqueue import Timetable, task
from django_workqueue.domain import timetables
from django_workqueue.lifecycle.declare import definitions, register, sync
from django_workqueue.lifecycle.reschedule import switch_off
from django_workqueue.lifecycle.schedule import review
from django_workqueue.models import Schedule
from tests import samples
from tests.factories import ScheduleFactory

pytestmark = pytest.mark.django_db

ADD = {"TASK": "tests.samples.add", "ARGS": [1, 2]}


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """Let tasks declare schedules for this test alone."""
    monkeypatch.setattr(timetables, "_declared", {})


@pytest.fixture
def code(settings):
    """Return a function that sets what the settings declare."""

    def declare(**schedules):
        settings.WORKQUEUE = {"SCHEDULES": {name.replace("_", "-"): ADD | entry for name, entry in schedules.items()}}

    return declare


def start(store):
    """Do what a worker does first."""
    register(store)
    review(store)


def row(name="nightly"):
    """Return the schedule of that name."""
    return Schedule.objects.get(name=name)


def problems():
    """Return what is wrong with the schedules in code."""
    return [fault.problem for fault in definitions(timezone.now())[1]]


# -- what can be declared ----------------------------------------------------------------------------------------------


def test_settings_declare_a_schedule(store, code):
    """With every option."""
    code(
        nightly={
            "CRON": "0 3 * * *",
            "ZONE": "Europe/Berlin",
            "ARGS": [1],
            "KWARGS": {"right": 2},
            "QUEUE": "mail",
            "TENANT": "acme",
            "PRIORITY": 7,
            "STARTS_AT": datetime(2026, 1, 1),  # noqa: DTZ001
            "ENDS_AT": datetime(2030, 1, 1, tzinfo=UTC),
            "CATCH_UP": "all",
            "OVERLAP": "allow",
        }
    )

    start(store)

    made = row()
    assert (made.task, made.args, made.kwargs) == ("tests.samples.add", "[1]", '{"right":2}')
    assert (made.queue, made.tenant, made.priority) == ("mail", "acme", 7)
    assert (made.cron, made.zone, made.catch_up, made.overlap) == ("0 3 * * *", "Europe/Berlin", "all", "allow")
    assert made.starts_at == datetime(2025, 12, 31, 23, tzinfo=UTC)
    assert (made.origin, made.enabled) == ("code", True)
    assert made.next_at == made.timing.next_after(timezone.now())


@pytest.mark.parametrize(
    ("given", "cron", "interval"),
    [
        ("0 3 * * *", "0 3 * * *", None),
        (timedelta(minutes=5), "", timedelta(minutes=5)),
        (Timetable(interval=90), "", timedelta(seconds=90)),
        ([Timetable(cron="0 3 * * *")], "0 3 * * *", None),
    ],
)
def test_task_declares_its_schedule(store, given, cron, interval):
    """A cron line, an interval or a timetable; queue, tenant and priority are the task's own."""
    timetables.declare("tests.samples.send", _with_args(given))

    start(store)

    made = row("tests.samples.send")
    assert (made.cron, made.interval) == (cron, interval)
    assert (made.queue, made.tenant, made.priority) == ("mail", "acme", 7)
    assert made.zone == "UTC"


def _with_args(given):
    """Return a timetable that gives the task the argument that it needs."""
    given = given[0] if isinstance(given, list) else given
    kinds = {str: "cron", timedelta: "interval"}
    if type(given) in kinds:
        return Timetable(**{kinds[type(given)]: given}, args=["ada"])
    return Timetable(cron=given.cron, interval=given.interval, args=["ada"])


def test_decorator_takes_a_schedule():
    """Declared where the task is; the task itself is an ordinary one."""
    made = task(schedule="0 3 * * *")(samples.scheduled_for.func)

    assert timetables._declared == {made.module_path: "0 3 * * *"}
    assert made.using(priority=1).priority == 1


def test_task_may_have_several_schedules(store):
    """Each under its own name."""
    timetables.declare(
        "tests.samples.scheduled_for",
        [Timetable(name="early", cron="0 3 * * *"), Timetable(name="late", cron="0 4 * * *")],
    )

    start(store)

    assert [each.name for each in Schedule.objects.order_by("name")] == ["early", "late"]


def test_all_catch_up_allows_overlap_by_default(store, code):
    """Or it would drop what it is to make up for."""
    code(nightly={"CRON": "0 3 * * *", "CATCH_UP": "all"})

    start(store)

    assert row().overlap == "allow"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"CRON": "61 3 * * *"}, "cron is '61 3 * * *'"),
        ({"CRON": "0 0 30 2 *"}, "cron is '0 0 30 2 *'"),
        ({}, "exactly one"),
        ({"CRON": "0 3 * * *", "INTERVAL": 5}, "exactly one"),
        ({"INTERVAL": 0}, "interval is"),
        ({"INTERVAL": "5 minutes"}, "interval is"),
        ({"CRON": "0 3 * * *", "ZONE": "Mars"}, "zone is 'Mars'"),
        ({"CRON": "0 3 * * *", "STARTS_AT": "soon"}, "starts_at is 'soon'"),
        ({"CRON": "0 3 * * *", "STARTS_AT": datetime(2026, 1, 1), "ZONE": "Mars"}, "zone is 'Mars'"),  # noqa: DTZ001
        ({"CRON": "0 3 * * *", "TASK": "tests.samples.nothing"}, "No task 'tests.samples.nothing'"),
        ({"CRON": "0 3 * * *", "TASK": 5}, "5"),
        ({"CRON": "0 3 * * *", "ARGS": [1]}, "do not fit"),
        ({"CRON": "0 3 * * *", "ARGS": [1, {2}]}, "args[1]"),
        ({"CRON": "0 3 * * *", "ARGS": 5}, "int"),
        ({"CRON": "0 3 * * *", "PRIORITY": 101}, "riority"),
        ({"CRON": "0 3 * * *", "TENANT": 5}, "tenant is 5"),
        ({"CRON": "0 3 * * *", "QUEUE": ""}, "queue is empty"),
        ({"CRON": "0 3 * * *", "CATCH_UP": "never"}, "catch_up is 'never'"),
        ({"CRON": "0 3 * * *", "CATCH_UP": "all", "OVERLAP": "skip"}, "Set overlap to 'allow'"),
        ({"CRON": "0 3 * * *", "cron": "0 3 * * *"}, "Did you mean 'CRON'?"),
        ({"CRON": "0 3 * * *", "NAME": "x"}, "'NAME' is not a key"),
        ({"CRON": "0 " * 200}, "cron"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(store, code, entry, problem, caplog):
    """And keeps no other schedule from being there (certimate#906)."""
    code(bad=entry, nightly={"CRON": "0 3 * * *"})

    with caplog.at_level(logging.ERROR):
        start(store)

    (told,) = problems()
    assert problem in told
    assert "SCHEDULES']['bad'] cannot be used" in caplog.text
    assert [each.name for each in Schedule.objects.all()] == ["nightly"]


@pytest.mark.parametrize("given", [5, ["0 3 * * *", None], Timetable(), Timetable(name="x" * 151, cron="0 3 * * *")])
def test_task_with_a_bad_schedule_can_be_imported(given):
    """The check tells; a module that fails to import would take everything with it."""
    timetables.declare("tests.samples.scheduled_for", given)

    assert problems()


def test_name_is_given_once(store, code):
    """Of two, neither could be told from the other."""
    code(nightly={"CRON": "0 3 * * *"})
    timetables.declare("tests.samples.scheduled_for", Timetable(name="nightly", cron="0 4 * * *"))

    assert len(problems()) == 1
    assert "has the name 'nightly'" in problems()[0]


def test_name_of_a_schedule_of_the_admin_is_not_taken_over(store, code):
    """What a person made is a person's."""
    ScheduleFactory(name="nightly", cron="0 5 * * *")
    code(nightly={"CRON": "0 3 * * *"})

    done = sync()

    assert row().cron == "0 5 * * *"
    assert "made in the admin" in done.refused[0].problem


# -- workers that start ------------------------------------------------------------------------------------------------


def test_start_without_a_change_writes_nothing(store, code, django_assert_num_queries):
    """In particular, the next firing stays as it is."""
    code(nightly={"INTERVAL": timedelta(hours=9)})
    start(store)
    before = list(Schedule.objects.values())

    start(store)

    assert list(Schedule.objects.values()) == before


def test_start_without_schedules_in_code_asks_nothing(store, django_assert_num_queries):
    """What is not used costs nothing."""
    with django_assert_num_queries(0):
        register(store)


def test_changed_code_holds_when_its_worker_starts(store, code):
    """Nobody need run anything."""
    code(nightly={"CRON": "0 3 * * *"})
    start(store)
    code(nightly={"CRON": "0 4 * * *", "ARGS": [3, 4]})

    start(store)

    assert (row().cron, row().args) == ("0 4 * * *", "[3,4]")
    assert row().next_at == row().timing.next_after(timezone.now())


def test_change_of_arguments_keeps_the_next_firing(store, code):
    """A firing that is due must not get lost in a deploy."""
    code(nightly={"CRON": "0 3 * * *"})
    start(store)
    due = timezone.now() - timedelta(minutes=1)
    Schedule.objects.update(next_at=due)
    code(nightly={"CRON": "0 3 * * *", "ARGS": [3, 4]})

    start(store)

    assert (row().args, row().next_at) == ("[3,4]", due)


def test_old_code_in_a_rollout_changes_nothing_back(store, code, caplog):
    """Old workers that start after the new ones leave what the new ones brought, and say so."""
    old, new = {"nightly": {"CRON": "0 3 * * *"}}, {"nightly": {"CRON": "0 4 * * *"}, "hourly": {"CRON": "0 * * * *"}}
    for version in (old, new):
        code(**version)
        start(store)
    before = list(Schedule.objects.values())
    code(**old)

    with caplog.at_level(logging.WARNING):
        start(store)

    assert list(Schedule.objects.values()) == before
    assert "schedules sync" in caplog.text


def test_sync_goes_back_to_a_former_version(store, code):
    """A rollback is deliberate."""
    for cron in ("0 3 * * *", "0 4 * * *"):
        code(nightly={"CRON": cron})
        start(store)
    code(nightly={"CRON": "0 3 * * *"})

    done = sync()

    assert done.changed == ["nightly"]
    assert row().cron == "0 3 * * *"
    code(nightly={"CRON": "0 4 * * *"})
    start(store)
    assert row().cron == "0 3 * * *"


def test_declared_as_off_is_off(store, code):
    """And on when the code says so."""
    code(nightly={"CRON": "0 3 * * *", "ENABLED": False})
    start(store)
    assert (row().enabled, row().next_at) == (False, None)

    code(nightly={"CRON": "0 3 * * *"})
    start(store)

    assert row().enabled
    assert row().next_at > timezone.now()


def test_what_a_person_switched_off_stays_off(store, code):
    """A deploy is no reason to send again what somebody has stopped."""
    code(nightly={"CRON": "0 3 * * *"})
    start(store)
    switch_off("nightly")
    code(nightly={"CRON": "0 4 * * *"})

    start(store)
    sync()

    assert (row().cron, row().enabled, row().off_reason) == ("0 4 * * *", False, "person")


# -- what is no longer in the code -------------------------------------------------------------------------------------


def test_removed_schedule_is_switched_off_by_sync_alone(store, code):
    """Not by a worker that happens to start; the row stays and says why (celery/django-celery-beat#768)."""
    code(nightly={"CRON": "0 3 * * *"}, hourly={"CRON": "0 * * * *"})
    start(store)
    last = timezone.now() - timedelta(hours=2)
    Schedule.objects.update(last_at=last)
    by_hand = ScheduleFactory()
    code(hourly={"CRON": "0 * * * *"})

    start(store)
    assert row().enabled
    done = sync()

    assert done.removed == ["nightly"]
    assert (row().enabled, row().off_reason, row().next_at, row().last_at) == (False, "removed", None, last)
    assert row("hourly").enabled
    assert row(by_hand.name).enabled
    assert sync().removed == []


def test_old_code_does_not_bring_back_what_was_removed(store, code):
    """A worker of the old version that starts after the sync."""
    code(nightly={"CRON": "0 3 * * *"})
    start(store)
    code()
    sync()
    code(nightly={"CRON": "0 3 * * *"})

    start(store)
    assert not row().enabled

    assert sync().changed == ["nightly"]
    assert row().enabled
    assert row().next_at > timezone.now()


def test_schedule_that_became_unusable_is_not_removed(store, code):
    """A typing error in the settings is no decision to stop."""
    code(nightly={"CRON": "0 3 * * *"})
    start(store)
    code(nightly={"CRON": "0 3 * *"})

    done = sync()

    assert done.removed == []
    assert [each.name for each in done.refused] == ["nightly"]
    assert row().enabled
