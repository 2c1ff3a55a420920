"""The hooks that come with the package: language and time zone, from whoever enqueues to the run."""

from __future__ import annotations

import datetime as dt
import logging
from contextlib import nullcontext
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone, translation

from django_workqueue.hooks import NewJob, carry_locale, in_query_thread, restore_locale
from django_workqueue.models import Job
from django_workqueue.testing import ThreadedWorker, drain
from tests import traces
from tests.domain.test_context import context

PAIR = {
    "ENQUEUE_HOOKS": ["django_workqueue.hooks.carry_locale"],
    "RUN_HOOKS": ["django_workqueue.hooks.restore_locale"],
}
LOOKS = pytest.mark.parametrize("look", [traces.look_around, traces.look_around_async], ids=["function", "coroutine"])


def carried(**metadata) -> dict[str, object]:
    """Return the metadata of a job after the enqueue hook."""
    new = NewJob(task="shop.tasks.pack", queue="default", tenant="", priority=0, metadata=metadata)
    carry_locale(new)
    return new.metadata


def restored(**metadata) -> tuple[str, str]:
    """Return language and time zone inside the run hook."""
    with restore_locale(context(metadata=metadata)):
        return translation.get_language(), timezone.get_current_timezone_name()


@pytest.fixture
def defaults(settings):
    """Return the project's language and time zone."""
    return settings.LANGUAGE_CODE, settings.TIME_ZONE


# -- what is carried --------------------------------------------------------------------------------------------------


def test_defaults_are_not_carried():
    """Most jobs of most projects need no metadata for this."""
    assert carried() == {}


def test_active_language_and_zone_are_carried():
    """By their names."""
    with translation.override("de"), timezone.override("Pacific/Auckland"):
        assert carried(user=3) == {"user": 3, "language": "de", "time_zone": "Pacific/Auckland"}


def test_language_that_the_caller_chose_stays():
    """A job may be for somebody else than who enqueues it."""
    with translation.override("de"):
        assert carried(language="fr") == {"language": "fr"}


def test_no_language_is_not_carried():
    """``deactivate_all`` is for code that must not translate, and says nothing about the reader."""
    with translation.override(None):
        assert carried() == {}


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        (dt.UTC, "+0000"),
        (timezone.get_fixed_timezone(-210), "-0330"),
        (dt.timezone(dt.timedelta(hours=2), "somewhere"), "+0200"),
        (ZoneInfo("Asia/Kathmandu"), "Asia/Kathmandu"),
    ],
)
def test_zone_without_a_name_is_carried_by_its_offset(settings, zone, name):
    """As one that a browser has told."""
    settings.TIME_ZONE = "Europe/Berlin"
    now = timezone.now()
    with timezone.override(zone):
        shown = timezone.localtime(now).isoformat()
        metadata = carried()

    assert metadata == {"time_zone": name}
    with restore_locale(context(metadata=metadata)):
        assert timezone.localtime(now).isoformat() == shown


# -- what is restored -------------------------------------------------------------------------------------------------


def test_language_and_zone_hold_inside_only(defaults):
    """And what was there before is there behind it."""
    assert restored(language="de", time_zone="Pacific/Auckland") == ("de", "Pacific/Auckland")
    assert (translation.get_language(), timezone.get_current_timezone_name()) == defaults


@pytest.mark.parametrize("name", ["xx", "../../etc", "", 7, ["de"]])
def test_unknown_language_leaves_the_default(defaults, caplog, name):
    """A language that a deploy has removed is no reason to lose the job."""
    with caplog.at_level(logging.WARNING, logger="django_workqueue.run"):
        assert restored(language=name) == defaults

    assert "carries the language" in caplog.text


@pytest.mark.parametrize("name", ["Mars/Olympus", "../../etc/passwd", "", "+99", "-", 7])
def test_unknown_zone_leaves_the_default(defaults, caplog, name):
    """So is a time zone that this host's tables do not have."""
    with caplog.at_level(logging.WARNING, logger="django_workqueue.run"):
        assert restored(time_zone=name) == defaults

    assert "carries the time zone" in caplog.text


# -- from the request to the run --------------------------------------------------------------------------------------


@pytest.mark.django_db
@LOOKS
def test_request_and_run_speak_the_same_language(settings, look):
    """The receipt of a German order is in German."""
    settings.WORKQUEUE = PAIR
    with translation.override("de"), timezone.override("Pacific/Auckland"):
        look.enqueue()
    look.enqueue()

    results = [attempt.result[:2] for attempt in drain()]

    assert results == [["de", "Pacific/Auckland"], [settings.LANGUAGE_CODE, settings.TIME_ZONE]]


@pytest.mark.django_db(transaction=True)
@LOOKS
def test_run_in_a_worker_speaks_the_language_too(settings, look):
    """In its threads and in its event loop, beside jobs without one."""
    settings.WORKQUEUE = PAIR
    with translation.override("de"):
        german = [look.enqueue() for _ in range(3)]
    others = [look.enqueue() for _ in range(3)]

    with ThreadedWorker() as worker:
        worker.settle()

    assert {look.get_result(each.id).return_value[0] for each in german} == {"de"}
    assert {look.get_result(each.id).return_value[0] for each in others} == {settings.LANGUAGE_CODE}


@pytest.mark.django_db(transaction=True)
@LOOKS
def test_every_run_begins_with_the_projects_own(settings, look):
    """Without hooks, whatever is active where it is enqueued and where the worker was started."""
    with translation.override("de"), timezone.override("Pacific/Auckland"):
        result = look.enqueue()
        with ThreadedWorker() as worker:
            worker.settle()

    assert Job.objects.count() == 0
    assert look.get_result(result.id).return_value == [settings.LANGUAGE_CODE, settings.TIME_ZONE, None]


def test_manager_in_the_query_thread_returns_what_it_wraps():
    """Around a plain function it is the manager itself."""
    with in_query_thread(nullcontext("entered")) as given:
        assert given == "entered"
