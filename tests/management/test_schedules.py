"""``manage.py workqueue schedules``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_workqueue.domain import timetables
from django_workqueue.lifecycle.schedule import review
from django_workqueue.models import Schedule
from tests.factories import ScheduleFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """Let no other test's tasks declare schedules."""
    monkeypatch.setattr(timetables, "_declared", {})


def call(*arguments: str) -> str:
    """Return what the command prints."""
    out = StringIO()
    call_command("workqueue", "schedules", *arguments, stdout=out)
    return out.getvalue()


def test_each_schedule_is_told_in_words(store):
    """With its next and last firing in its own zone, and why it does not fire where it does not."""
    last = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)
    ScheduleFactory(name="nightly", cron="0 3 * * *", zone="Europe/Berlin", last_at=last)
    ScheduleFactory(name="broken", cron="61 * * * *")
    ScheduleFactory(name="gone", enabled=False, off_reason="removed")
    ScheduleFactory(name="done", ends_at=timezone.now() - timedelta(hours=1))
    review(store)

    head, broken, done, gone, nightly, fault = call().splitlines()

    assert head.split() == ["schedule", "when", "next", "last"]
    assert broken.endswith("at fault")
    assert fault.startswith("broken: cron is '61 * * * *'")
    assert done.endswith("over")
    assert gone.endswith("off: no longer in the code")
    assert "At 03:00 every day (Europe/Berlin)" in nightly
    assert " 03:00:00+0" in nightly
    assert nightly.endswith("2026-01-01 03:00:00+0100")


def test_nothing_is_told_as_such(db):
    """An empty table would leave open whether the command looked."""
    assert call() == "There is no schedule.\n"


def test_programs_get_an_object(store):
    """Times as ISO 8601."""
    ScheduleFactory(name="nightly", cron="0 3 * * *", zone="Europe/Berlin")
    review(store)

    report = json.loads(call("--format=json"))

    (row,) = report["schedules"]
    assert report["synced"] is None
    assert row["when"] == "At 03:00 every day (Europe/Berlin)"
    assert datetime.fromisoformat(row["next_at"]) == Schedule.objects.get().next_at
    assert row["last_at"] is None


def test_sync_says_what_it_changed(db, settings):
    """Added, changed, removed: a deployment's log tells."""
    hourly = {"TASK": "tests.samples.add", "ARGS": [1, 2], "INTERVAL": 3600}
    settings.WORKQUEUE = {"SCHEDULES": {"hourly": hourly}}
    assert call("sync").splitlines()[0] == "added: hourly"
    assert call("sync").splitlines()[0].split() == ["schedule", "when", "next", "last"]

    settings.WORKQUEUE = {"SCHEDULES": {"hourly": hourly | {"INTERVAL": 1800}}}
    assert call("sync").splitlines()[0] == "changed: hourly"

    settings.WORKQUEUE = {}
    report = json.loads(call("sync", "--format", "json"))
    assert report["synced"] == {"added": [], "changed": [], "removed": ["hourly"], "refused": []}
    assert not Schedule.objects.get().enabled


def test_unknown_act_is_refused(db):
    """A typing error must not pass for a list."""
    with pytest.raises(CommandError, match="snyc"):
        call("snyc")
