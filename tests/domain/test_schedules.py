"""When a schedule fires, without any clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from django_workqueue.domain.schedules import (
    GRACE,
    MOST_CAUGHT_UP,
    Timing,
    check_policies,
    due_firings,
    next_few,
)
from django_workqueue.exceptions import InvalidScheduleError

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ["UTC", "Europe/Berlin", "America/Chicago", "Pacific/Auckland", "Australia/Lord_Howe", "America/Santiago"]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def berlin(cron):
    """Return the timing of a cron line in Berlin."""
    return Timing(cron=cron, zone="Europe/Berlin")


def firings(timing, first, until):
    """Return the firings from one local time in Berlin up to before another, as text of UTC hours and minutes."""
    start, end = (datetime.fromisoformat(text).replace(tzinfo=BERLIN).astimezone(UTC) for text in (first, until))
    found = timing.firings_after(start - timedelta(microseconds=1))
    return [f"{firing:%d %H:%M}" for firing in takewhile(lambda firing: firing < end, found)]


# -- clocks that change ------------------------------------------------------------------------------------------------


def test_fixed_time_fires_once_in_the_repeated_hour():
    """One tick on the day that has the hour twice, and the next a day later (celery/celery#1604, jobrunr#1145)."""
    assert firings(berlin("5 2 * * *"), "2026-10-24 12:00", "2026-10-26 12:00") == ["25 00:05", "26 01:05"]


def test_fixed_time_does_not_come_back_in_the_second_hour():
    """Asked from within the second pass of the hour, it is tomorrow's turn: no firing lies in the past."""
    second_pass = datetime(2026, 10, 25, 2, 1, tzinfo=BERLIN, fold=1)

    assert berlin("5 2 * * *").next_after(second_pass) == datetime(2026, 10, 26, 1, 5, tzinfo=UTC)


def test_fixed_time_in_the_missing_hour_fires_at_its_end():
    """The day that lacks 02:30 has its run all the same, at 03:00 summer time."""
    assert firings(berlin("30 2 * * *"), "2026-03-28 12:00", "2026-03-30 12:00") == ["29 01:00", "30 00:30"]


def test_fixed_times_of_the_missing_hour_are_made_up_for_once():
    """Two in the same gap, and one that stands at its end, are one firing there."""
    assert firings(berlin("0,30 2,3 * * *"), "2026-03-29 00:00", "2026-03-29 12:00") == ["29 01:00", "29 01:30"]


def test_quarters_run_through_both_hours():
    """A line that begins with a star counts real time: eight quarters in the double hour, none in the gap."""
    autumn = firings(berlin("*/15 * * * *"), "2026-10-25 02:00", "2026-10-25 03:00")
    spring = firings(berlin("*/15 * * * *"), "2026-03-29 01:45", "2026-03-29 03:15")

    assert autumn == [f"25 0{hour}:{minute:02}" for hour in (0, 1) for minute in (0, 15, 30, 45)]
    assert spring == ["29 00:45", "29 01:00"]


def test_each_schedule_has_its_own_zone():
    """The same line for three cities is three firings a day (celery/django-celery-beat#5, #140)."""
    zones = {"Europe/Madrid": "08:30", "America/Chicago": "15:30", "Pacific/Auckland": "20:30"}

    for zone, expected in zones.items():
        timing = Timing(cron="30 9 * * *", zone=zone)
        found = list(islice(timing.firings_after(NOON), 3))
        assert [f"{firing:%H:%M}" for firing in found] == [expected] * 3
        assert {b - a for a, b in pairwise(found)} == {timedelta(days=1)}


# -- cron --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("*/5 * * * *", "2026-01-01 12:05"),
        ("15-20 12 * * *", "2026-01-01 12:15"),
        ("10-50/20 * * * *", "2026-01-01 12:10"),
        ("0 0 * * 0", "2026-01-04 00:00"),
        ("0 0 * * 7", "2026-01-04 00:00"),
        ("0 0 * * SUN", "2026-01-04 00:00"),
        ("0 0 13 * 5", "2026-01-02 00:00"),
        ("0 0 6,13 * *", "2026-01-06 00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0 0 L * *", "2026-01-31 00:00"),
        ("0 0 1 JAN *", "2027-01-01 00:00"),
    ],
)
def test_five_fields_mean_what_cron_says(cron, expected):
    """Ranges, steps, lists, names; Sunday is 0 or 7; a day of the month and one of the week mean either."""
    timing = Timing(cron=cron)
    timing.check()

    assert f"{timing.next_after(NOON):%Y-%m-%d %H:%M}" == expected


def test_next_firing_is_strictly_later():
    """Whole minutes, and never the moment itself."""
    timing = Timing(cron="* * * * *")

    assert timing.next_after(NOON) == NOON + timedelta(minutes=1)
    assert timing.next_after(NOON + timedelta(seconds=59, microseconds=999_999)) == NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    "cron",
    [
        *("", "* * * *", "0 * * * * *", "61 * * * *", "*/0 * * * *", "5-1 * * * *", "1,,2 * * * *", "? * * * *"),
        *("@daily", "0 0 30 2 *", "0 0 31 4,6 *", "0 0 * * MON#6", "0 0 * * L5/2", "x * * * *", f"{9**150} * * * *"),
    ],
)
def test_line_that_cannot_be_followed_is_refused(cron):
    """Bad fields, and days that never come, are an error by name and no endless search (certimate#906)."""
    with pytest.raises(InvalidScheduleError, match="cron is"):
        Timing(cron=cron).check()


def test_refusal_is_a_value_error():
    """Whoever validates a form need not know our errors."""
    assert issubclass(InvalidScheduleError, ValueError)


CRON_FIELD = {
    "minute": st.sampled_from(["*", "0", "5", "30", "59", "*/15", "0,30", "10-20", "5/20"]),
    "hour": st.sampled_from(["*", "0", "1", "2", "3", "23", "*/2", "1-3", "2,14"]),
    "day": st.sampled_from(["*", "1", "15", "29", "31", "L", "*/10"]),
    "month": st.sampled_from(["*", "3", "10", "11", "4-9"]),
    "weekday": st.sampled_from(["*", "0", "7", "1-5", "SUN"]),
}
LINES = st.tuples(*CRON_FIELD.values()).map(" ".join)
MOMENTS = st.integers(0, 365 * 86_400).map(lambda seconds: NOON + timedelta(seconds=seconds))


def fires(cron):
    """Whether a line ever fires: some days are in none of the drawn months."""
    try:
        Timing(cron=cron).check()
    except InvalidScheduleError:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(LINES.filter(fires), st.sampled_from(ZONES), MOMENTS)
def test_asking_again_and_again_is_cronsim_s_own_iteration(cron, zone, moment):
    """A schedule that is asked anew after each firing follows the same ticks, and time never stands still or turns."""
    timing = Timing(cron=cron, zone=zone)
    iteration = (firing.astimezone(UTC) for firing in CronSim(cron, moment.astimezone(ZoneInfo(zone))))
    expected, last = [], moment
    for firing in islice(iteration, 40):
        if firing > last:
            expected.append(firing)
            last = firing

    asked, now = [], moment
    for _ in expected:
        now = timing.next_after(now)
        asked.append(now)

    assert asked == expected
    assert all(a < b for a, b in pairwise([moment, *asked]))


@settings(max_examples=80, deadline=None)
@given(LINES.filter(fires), st.sampled_from(ZONES), MOMENTS, st.integers(1, 40), st.integers(1, 10))
def test_last_firings_are_the_end_of_all(cron, zone, moment, count, most):
    """Looking back from the end finds what counting from the beginning does."""
    timing = Timing(cron=cron, zone=zone)
    every = list(islice(timing.firings_after(moment), count))
    until = every[-1] + timedelta(seconds=30)

    assert timing.last_firings(every[0], until, most) == every[-most:]


# -- intervals ---------------------------------------------------------------------------------------------------------


def test_interval_does_not_drift():
    """Firings are counted from one moment, not from the last time that somebody looked."""
    timing = Timing(interval=timedelta(minutes=7), anchor=NOON)

    late = timing.next_after(NOON + timedelta(minutes=7, seconds=5))

    assert timing.next_after(NOON) == NOON + timedelta(minutes=7)
    assert late == NOON + timedelta(minutes=14)


def test_interval_goes_through_a_change_of_clocks():
    """Real time passes evenly, whatever the clocks on the wall do."""
    start = datetime(2026, 10, 25, 0, tzinfo=UTC)
    timing = Timing(interval=timedelta(hours=1), zone="Europe/Berlin", anchor=start)

    assert list(islice(timing.firings_after(start), 4)) == [start + timedelta(hours=hour) for hour in range(1, 5)]


def test_interval_with_a_start_begins_there():
    """The start is the first firing."""
    timing = Timing(interval=timedelta(hours=1), starts_at=NOON, anchor=NOON - timedelta(days=9))

    assert timing.next_after(NOON - timedelta(days=3)) == NOON
    assert timing.next_after(NOON) == NOON + timedelta(hours=1)


@pytest.mark.parametrize("interval", [timedelta(), timedelta(seconds=-5), timedelta(milliseconds=999), "5 minutes"])
def test_interval_that_is_no_interval_is_refused(interval):
    """A schedule must not fire without end."""
    with pytest.raises(InvalidScheduleError, match="interval is"):
        Timing(interval=interval).check()


# -- both --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given_", [{}, {"cron": "* * * * *", "interval": timedelta(hours=1)}])
def test_exactly_one_of_cron_and_interval_is_given(given_):
    """Neither says nothing, and both say two things."""
    with pytest.raises(InvalidScheduleError, match="exactly one"):
        Timing(**given_).check()


@pytest.mark.parametrize("zone", ["Mars/Olympus", "Europe", "../etc/passwd", "", 5, "\x00", "ü" * 300])
def test_unknown_zone_is_refused(zone):
    """Whatever the name may do to the library or the file system."""
    with pytest.raises(InvalidScheduleError, match="zone is"):
        Timing(cron="* * * * *", zone=zone).check()


def test_nothing_fires_before_the_start_or_after_the_end():
    """Both bounds belong to the time in between."""
    timing = Timing(cron="0 * * * *", starts_at=NOON, ends_at=NOON + timedelta(hours=2))
    timing.check()

    assert list(timing.firings_after(NOON - timedelta(days=1))) == [NOON + timedelta(hours=n) for n in range(3)]
    assert timing.next_after(NOON + timedelta(hours=2)) is None


def test_end_before_the_start_is_refused():
    """Such a schedule never fires."""
    with pytest.raises(InvalidScheduleError, match="ends_at is"):
        Timing(cron="0 * * * *", starts_at=NOON, ends_at=NOON).check()


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        (Timing(cron="0 3 * * *", zone="Europe/Berlin"), "At 03:00 every day (Europe/Berlin)"),
        (Timing(interval=timedelta(minutes=5)), "Every 5 minutes"),
        (Timing(interval=timedelta(days=1, hours=2)), "Every 1 day 2 hours"),
        (Timing(interval=timedelta(seconds=1.5)), "Every 1.5 seconds"),
    ],
)
def test_timing_is_told_in_words(timing, words):
    """Not everybody reads cron lines."""
    assert timing.words() == words


def test_next_few_are_local_times():
    """What a person is shown is the time on the wall."""
    shown = next_few(berlin("5 2 * * *"), datetime(2026, 10, 24, 12, tzinfo=UTC), 2)

    assert [f"{each:%d %H:%M %Z}" for each in shown] == ["25 02:05 CEST", "26 02:05 CET"]


def test_digest_tells_timings_apart():
    """The same moment in two zones is the same, another line is another."""
    here = Timing(cron="0 3 * * *", starts_at=NOON)
    same = Timing(cron="0 3 * * *", starts_at=NOON.astimezone(BERLIN))

    assert here.digest() == same.digest()
    assert (
        len({here.digest(), Timing(cron="1 3 * * *", starts_at=NOON).digest(), Timing(cron="0 3 * * *").digest()}) == 3
    )


# -- what was missed ---------------------------------------------------------------------------------------------------

MINUTELY = Timing(cron="* * * * *")


def test_latest_makes_up_for_the_last_firing():
    """One run after an outage, which stands for the firing that was due last (sidekiq#4893, apscheduler#463)."""
    now = NOON + timedelta(minutes=5, seconds=20)

    assert due_firings(MINUTELY, "latest", NOON, now) == [NOON + timedelta(minutes=5)]


def test_all_makes_up_for_every_firing_in_order():
    """Each of them, oldest first."""
    now = NOON + timedelta(minutes=5, seconds=20)

    assert due_firings(MINUTELY, "all", NOON, now) == [NOON + timedelta(minutes=n) for n in range(6)]


def test_all_has_a_bound():
    """A year of missed minutes is not half a million jobs; the last ones are made up for."""
    found = due_firings(MINUTELY, "all", NOON - timedelta(days=365), NOON)

    assert len(found) == MOST_CAUGHT_UP
    assert (found[0], found[-1]) == (NOON - timedelta(minutes=MOST_CAUGHT_UP - 1), NOON)


def test_bound_holds_for_short_intervals():
    """A year of seconds is answered at once."""
    seconds = Timing(interval=timedelta(seconds=1), anchor=NOON - timedelta(days=365))

    found = due_firings(seconds, "all", NOON - timedelta(days=364), NOON)

    assert len(found) == MOST_CAUGHT_UP
    assert found[-1] == NOON


def test_skip_drops_what_was_missed():
    """What is late by more than the grace is not run; what is on time is."""
    hourly = Timing(cron="0 * * * *")

    assert due_firings(hourly, "skip", NOON - timedelta(hours=3), NOON + GRACE) == [NOON]
    assert due_firings(hourly, "skip", NOON - timedelta(hours=3), NOON + GRACE + timedelta(seconds=1)) == []


@pytest.mark.parametrize("catch_up", ["latest", "skip", "all"])
def test_time_set_by_hand_is_a_firing(catch_up):
    """Whoever moves the next time by an update is taken at his word."""
    daily, by_hand = Timing(cron="0 3 * * *"), NOON + timedelta(minutes=7)

    assert due_firings(daily, catch_up, by_hand, by_hand + timedelta(seconds=1)) == [by_hand]


@pytest.mark.parametrize(("catch_up", "overlap"), [("never", "skip"), ("latest", "maybe"), ("all", "skip"), (None, "")])
def test_policies_are_words_that_go_together(catch_up, overlap):
    """All missed firings at once, and none beside another, is a contradiction."""
    with pytest.raises(InvalidScheduleError):
        check_policies(catch_up, overlap)
