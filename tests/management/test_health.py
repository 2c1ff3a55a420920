"""``workqueue health``: what a monitor is told."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from django_workqueue.lifecycle import warn
from django_workqueue.store import store_for
from tests.factories import DeadLetterFactory, JobFactory, QueueFactory, ScheduleFactory, WorkerFactory, ago

from .calling import call, failing, refused, report

pytestmark = pytest.mark.django_db


def breaches(found):
    """Return which bounds of which queues are passed."""
    return [(each["queue"], each["bound"]) for each in found["breaches"]]


def test_queue_within_its_bounds_is_healthy():
    """The exit code is 0, and the report says how things stand."""
    JobFactory.create_batch(2, ready_at=ago(seconds=30))
    DeadLetterFactory()
    WorkerFactory()

    found = report("health", "--max-age=1h", "--max-backlog=2", "--max-dead=1", "--min-workers=1")

    assert (found["healthy"], found["breaches"]) == (True, [])
    [queue] = found["queues"]
    assert (queue["queue"], queue["ready"], queue["dead"], queue["workers"]) == ("default", 2, 1, 1)


@pytest.mark.parametrize(
    ("option", "bound", "sentence"),
    [
        ("--max-age=60", "max_age", "default: the oldest ready job has waited 5m, longer than 1m."),
        ("--max-backlog=2", "max_backlog", "default: more than 2 jobs are ready."),
        ("--max-dead=1", "max_dead", "default: more than 1 dead letters wait for a decision."),
        ("--min-workers=1", "min_workers", "default: 0 live workers serve it, fewer than 1."),
    ],
)
def test_each_bound_that_is_passed_is_named(option, bound, sentence):
    """With its queue and its value, on the first lines; the exit code is 1."""
    JobFactory.create_batch(3, ready_at=ago(minutes=5))
    DeadLetterFactory.create_batch(2)
    WorkerFactory(silent=True)

    assert breaches(failing("health", option)) == [("default", bound)]
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("workqueue", "health", option, stdout=out)
    assert out.getvalue().splitlines()[:2] == ["NOT HEALTHY", sentence]


def test_counting_stops_at_the_bound():
    """A backlog of millions is no load for whoever looks each minute."""
    JobFactory.create_batch(5)

    assert [row["ready"] for row in failing("health", "--max-backlog=2")["queues"]] == [3]


def test_acknowledged_dead_letters_raise_no_alarm():
    """Somebody knows of them."""
    DeadLetterFactory(acknowledged=True)
    DeadLetterFactory()

    assert breaches(report("health", "--max-dead=1")) == []
    assert breaches(failing("health", "--max-dead=0")) == [("default", "max_dead")]


def test_bounds_hold_for_each_queue_by_itself():
    """One queue's backlog is not another's."""
    JobFactory.create_batch(2, queue="mail")
    JobFactory.create_batch(2, queue="reports")

    assert breaches(report("health", "--max-backlog=3")) == []
    assert breaches(failing("health", "--max-backlog=1", "--queues=rep*,default")) == [("reports", "max_backlog")]


def test_queue_that_is_named_is_missed_though_nothing_is_in_it():
    """Work without workers is found before there is any."""
    assert breaches(failing("health", "--min-workers=1", "--queues=mail")) == [("mail", "min_workers")]
    assert breaches(report("health", "--min-workers=1")) == []


def test_paused_queue_needs_no_worker_but_is_not_forgotten():
    """Its jobs grow old, and that is told."""
    QueueFactory(name="mail", paused=True)
    JobFactory(queue="mail", ready_at=ago(hours=2))

    found = failing("health", "--min-workers=1", "--max-age=1h")

    assert breaches(found) == [("mail", "max_age")]
    assert found["queues"][0]["paused"]


def test_health_without_bounds_asks_whether_the_database_answers():
    """It passes with an empty queue."""
    assert call("health") == "healthy\n"


@pytest.mark.parametrize("option", ["--max-age=soon", "--max-backlog=-1", "--max-dead=many", "--min-workers=0"])
def test_bound_that_is_none_is_a_fault_of_usage(option):
    """A monitor must not take a typing error for health."""
    assert "is not a" in refused("health", option)


# -- warnings ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def _quiet(monkeypatch):
    """Leave out what other sessions on the test server do."""
    monkeypatch.setattr(type(store_for()), "snapshots", lambda _self: [])
    monkeypatch.setattr(type(store_for()), "bloat", lambda _self: [])


def kinds(found):
    """Return the words for what is wrong."""
    return [each["kind"] for each in found["warnings"]]


@pytest.mark.usefixtures("_quiet")
def test_warnings_are_looked_for_when_asked_for():
    """Bounds alone are what a monitor has asked for until then; each warning comes with its remedy."""
    JobFactory(queue="defualt", task="tests.samples.add")
    ScheduleFactory(name="nightly", fault="no such task")

    assert report("health")["warnings"] == []
    assert kinds(failing("health", "--warnings")) == ["unserved", "faulty_schedule"]
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("workqueue", "health", "--warnings=faulty_schedule", stdout=out)
    assert out.getvalue().splitlines()[:3] == [
        "NOT HEALTHY",
        "faulty_schedule: Schedule nightly is at fault: no such task",
        "    Correct it where it is defined, or switch it off.",
    ]


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--warnings=unserved,clock"], ["unserved"]),
        (["--ignore=unserved"], ["faulty_schedule"]),
        (["--warnings", "--ignore=unserved"], ["faulty_schedule"]),
        (["--warnings=unserved,faulty_schedule", "--ignore=faulty_schedule"], ["unserved"]),
    ],
)
def test_warnings_are_chosen_by_kind(words, told):
    """A monitor is not to ring for what somebody has decided to live with."""
    JobFactory(queue="defualt", task="tests.samples.add")
    ScheduleFactory(name="nightly", fault="no such task")

    assert kinds(failing("health", *words)) == told
    assert kinds(report("health", *words, "--ignore=unserved,faulty_schedule")) == []


def test_unknown_kind_of_warning_is_refused():
    """One that is misspelt would never ring."""
    assert "'unservd' is not one of migration, " in refused("health", "--warnings=unservd")
    assert "names none of" in refused("health", "--ignore=,")


@pytest.mark.usefixtures("_quiet")
def test_what_is_not_asked_for_is_not_read(django_assert_max_num_queries):
    """A look each ten seconds costs what it asks for."""
    with django_assert_max_num_queries(2):
        assert warn.warnings(kinds=["migration"]) == []
    with django_assert_max_num_queries(0):
        assert warn.warnings(kinds=[]) == []


@pytest.mark.usefixtures("_quiet")
def test_every_warning_is_of_a_known_kind():
    """What can be told can be chosen."""
    source = Path(warn.__file__).read_text()

    told = re.findall(r'Finding\(\s*"(\w+)"', source)
    assert set(told) == set(warn.KINDS)
