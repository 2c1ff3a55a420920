"""What people do to schedules."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_workqueue import InvalidScheduleError, ScheduleNotFoundError
from django_workqueue.domain.context import SCHEDULE
from django_workqueue.lifecycle import reschedule
from django_workqueue.lifecycle.schedule import review, tick
from django_workqueue.models import Firing, Job, Schedule
from tests.factories import ScheduleFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(store):
    """Return a schedule that is planned."""
    made = ScheduleFactory(name="nightly", cron="0 3 * * *", zone="Europe/Berlin")
    review(store)
    made.refresh_from_db()
    return made


def test_switching_off_and_on_holds_at_once(store, row):
    """Without waiting for a review; and what was missed meanwhile is not made up for."""
    assert reschedule.switch_off("nightly")
    off = Schedule.objects.get()
    assert (off.enabled, off.off_reason, off.next_at) == (False, "person", None)

    assert reschedule.switch_on("nightly")

    on = Schedule.objects.get()
    assert (on.enabled, on.off_reason, on.next_at) == (True, "", row.next_at)
    assert not tick(store).lanes


def test_switching_twice_changes_nothing(row):
    """The second answer says so."""
    assert not reschedule.switch_on("nightly")
    reschedule.switch_off("nightly")
    assert not reschedule.switch_off("nightly")


def test_schedule_at_fault_cannot_be_switched_on(row):
    """It would only be flagged."""
    Schedule.objects.update(enabled=False, cron="61 * * * *")

    with pytest.raises(InvalidScheduleError, match="61"):
        reschedule.switch_on("nightly")


@pytest.mark.parametrize("act", [reschedule.switch_on, reschedule.switch_off, reschedule.run_once, reschedule.remove])
def test_unknown_name_is_refused(act, db):
    """By name."""
    with pytest.raises(ScheduleNotFoundError, match="'weekly'"):
        act("weekly")


def test_running_once_leaves_the_times_as_they_are(row):
    """One job more, also of a schedule that is off."""
    reschedule.switch_off("nightly")

    stored = reschedule.run_once("nightly")

    assert not stored.duplicate
    assert Job.objects.get().decoded_metadata[SCHEDULE] == "nightly"
    assert Schedule.objects.get().last_at is None


def test_running_once_is_in_the_history(row):
    """As done by hand, which has no time to be due; one that found the first still live is told apart."""
    first = reschedule.run_once("nightly")
    reschedule.run_once("nightly")

    history = Firing.objects.order_by("id").values_list("due_at", "job_id", "skipped")
    assert list(history) == [(None, first.job.pk, False), (None, first.job.pk, True)]


def test_running_once_keeps_to_the_overlap_policy(row):
    """Two clicks are one job."""
    first = reschedule.run_once("nightly")
    second = reschedule.run_once("nightly")

    assert second.duplicate
    assert second.job.pk == first.job.pk


def test_new_schedule_is_planned_when_it_is_kept(db):
    """It needs no review to fire on time."""
    reschedule.keep(Schedule(name="hourly", task="tests.samples.add", args="[1,2]", cron="0 * * * *", zone="UTC"))

    made = Schedule.objects.get()
    assert made.next_at == made.timing.next_after(timezone.now())
    assert made.plan == made.digest


def test_editing_does_not_undo_a_firing_of_meanwhile(store, row):
    """A form that was filled before the firing must not bring its time back (two runs of one firing)."""
    stale = Schedule.objects.get()
    Schedule.objects.update(next_at=timezone.now() - timedelta(seconds=1))
    stale.next_at = timezone.now() - timedelta(seconds=1)
    tick(store)
    moved = Schedule.objects.get()

    stale.args = "[7,8]"
    reschedule.keep(stale)

    after = Schedule.objects.get()
    assert (after.args, after.next_at, after.last_at) == ("[7,8]", moved.next_at, moved.last_at)


def test_edited_times_are_planned_at_once(row):
    """The next firing is of the new line."""
    row.cron = "30 4 * * *"
    reschedule.keep(row)

    after = Schedule.objects.get()
    assert after.next_at == after.timing.next_after(timezone.now())
    assert after.plan == after.digest


def test_what_cannot_be_followed_is_not_kept(row):
    """The row stays as it was."""
    row.cron = "61 * * * *"

    with pytest.raises(InvalidScheduleError):
        reschedule.keep(row)

    assert Schedule.objects.get().cron == "0 3 * * *"


def test_schedule_of_the_code_cannot_be_deleted(row):
    """It would be back at the next start; once it is gone from the code it can."""
    Schedule.objects.update(origin="code")
    with pytest.raises(InvalidScheduleError, match="in the code"):
        reschedule.remove("nightly")

    Schedule.objects.update(off_reason="removed")
    reschedule.remove("nightly")

    assert not Schedule.objects.exists()


def test_schedules_are_described(row):
    """In words, with times of their own zone."""
    ScheduleFactory(name="broken", cron="61 * * * *")

    broken, nightly = reschedule.schedules()

    assert nightly.when == "At 03:00 every day (Europe/Berlin)"
    assert f"{nightly.next_at:%H:%M}" == "03:00"
    assert (broken.when, broken.next_at) == ("61 * * * *", None)
    assert "61" in broken.fault


def test_next_five_firings_are_told(row):
    """For whoever wants to see whether the line means what it should."""
    told = reschedule.upcoming(row, timezone.now())

    assert len(told) == 5
    assert {f"{each:%H:%M}" for each in told} == {"03:00"}
    row.enabled = False
    assert reschedule.upcoming(row, timezone.now()) == []
