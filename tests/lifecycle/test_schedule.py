"""Firing schedules: what is due is enqueued once, in the transaction that moves its schedule on."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone

from django_workqueue.domain.context import SCHEDULE, SCHEDULED_FOR
from django_workqueue.lifecycle import schedule as module
from django_workqueue.lifecycle.schedule import review, tick
from django_workqueue.models import Job, Schedule
from django_workqueue.store import store_for
from tests.claims import claim_one, complete
from tests.factories import ScheduleFactory, ago
from tests.racing import race

pytestmark = pytest.mark.django_db


def plan(store, **columns):
    """Return a new schedule after the first look at it."""
    row = ScheduleFactory(**columns)
    review(store)
    row.refresh_from_db()
    return row


def let_due(row, late=timedelta(seconds=1)):
    """Let the next firing of a schedule have come so long ago."""
    Schedule.objects.filter(pk=row.pk).update(next_at=timezone.now() - late)


def firings():
    """Return the firings that live jobs stand for, oldest job first."""
    return [job.decoded_metadata[SCHEDULED_FOR] for job in Job.objects.order_by("id")]


def ticked(store):
    """Tick until nothing is due, and return the number of live jobs."""
    while tick(store).lanes:
        pass
    return Job.objects.count()


# -- planning ----------------------------------------------------------------------------------------------------------


def test_new_schedule_is_planned_and_does_not_fire_at_once(store):
    """Its first firing is the next one of its line."""
    row = plan(store, cron="0 3 * * *", zone="Europe/Berlin")

    assert ticked(store) == 0
    assert row.next_at == row.timing.next_after(timezone.now())


def test_interval_begins_one_interval_after_the_schedule_was_made(store):
    """Not at once, and not from whenever a worker first saw it."""
    row = plan(store, cron="", interval=timedelta(hours=5), created_at=ago(hours=1))

    assert timedelta(hours=3, minutes=59) < row.next_at - timezone.now() < timedelta(hours=4)


@pytest.mark.parametrize("edit", [{"cron": "30 4 * * *"}, {"zone": "Asia/Tokyo"}, {"starts_at": "far"}])
def test_edit_by_a_plain_update_holds_from_the_next_review(store, edit):
    """Nobody need call anything of ours (celery/django-celery-beat#37, #42)."""
    row = plan(store, cron="0 3 * * *", zone="Europe/Berlin")
    if "starts_at" in edit:
        edit = {"starts_at": timezone.now() + timedelta(days=900)}
    Schedule.objects.filter(pk=row.pk).update(**edit)

    review(store)

    after = Schedule.objects.get()
    assert after.next_at != row.next_at
    assert after.next_at == after.timing.next_after(timezone.now())


def test_edited_schedule_does_not_fire_by_its_former_times(store):
    """Also where a worker finds it due before any review has seen the edit."""
    row = plan(store)
    let_due(row)
    Schedule.objects.filter(pk=row.pk).update(cron="30 4 * * *")

    assert ticked(store) == 0
    assert Schedule.objects.get().next_at > timezone.now()


def test_edited_arguments_drop_no_firing(store):
    """What is due is due, with the new arguments."""
    row = plan(store)
    let_due(row)
    Schedule.objects.update(args="[3,4]")
    review(store)

    assert ticked(store) == 1
    assert Job.objects.get().args == "[3,4]"


def test_schedule_that_is_switched_off_is_not_due(store):
    """From the next look on, by a plain update too."""
    row = plan(store)
    let_due(row)
    Schedule.objects.update(enabled=False)

    assert ticked(store) == 0
    review(store)
    assert Schedule.objects.get().next_at is None


def test_switching_on_again_does_not_fire_at_once(store):
    """What it missed while it was off is not made up for."""
    row = plan(store, catch_up="all", overlap="allow")
    let_due(row, timedelta(hours=5))
    Schedule.objects.update(enabled=False)
    review(store)
    Schedule.objects.update(enabled=True)
    review(store)

    assert ticked(store) == 0
    assert Schedule.objects.get().next_at > timezone.now()


def test_schedule_that_is_over_fires_no_more(store):
    """After its end there is no next firing, and no fault either."""
    plan(store, ends_at=ago(minutes=1))

    row = Schedule.objects.get()
    assert (row.next_at, row.fault) == (None, "")
    Schedule.objects.update(ends_at=None)
    review(store)
    assert Schedule.objects.get().next_at > timezone.now()


def test_review_goes_through_all_pages(store, monkeypatch):
    """A long list is looked through in parts, each of which is bounded."""
    monkeypatch.setattr(module, "PAGE", 2)
    rows = ScheduleFactory.create_batch(5)

    seen, behind = [], 0
    for _ in range(3):
        reviewed = review(store, behind)
        behind = reviewed.behind
        seen.append(reviewed.rows)

    assert seen == [2, 2, 1]
    assert behind == 0
    assert Schedule.objects.filter(next_at__isnull=False).count() == len(rows)


# -- firing ------------------------------------------------------------------------------------------------------------


def test_due_schedule_enqueues_its_job_and_moves_on(store):
    """With all that the schedule says, and the firing that it stands for."""
    row = plan(
        store,
        name="nightly",
        args="[5]",
        kwargs='{"right":6}',
        queue="mail",
        tenant="acme",
        priority=9,
        cron="0 3 * * *",
    )
    let_due(row)

    done = tick(store)

    job = Job.objects.get()
    assert (job.task, job.decoded_args, job.decoded_kwargs) == ("tests.samples.add", [5], {"right": 6})
    assert (job.queue, job.tenant, job.priority, job.state) == ("mail", "acme", 9, "ready")
    assert job.decoded_metadata[SCHEDULE] == "nightly"
    assert done.lanes == {("mail", "acme")}
    after = Schedule.objects.get()
    assert after.next_at == after.timing.next_after(timezone.now())
    assert after.last_at.isoformat() == job.decoded_metadata[SCHEDULED_FOR]


def test_job_has_the_options_of_its_task(store):
    """Attempts and metadata are the task's, as at any other enqueue."""
    let_due(plan(store, task="tests.samples.send", args='["ada"]'))

    tick(store)

    job = Job.objects.get()
    assert job.max_attempts == 2
    assert job.decoded_metadata["team"] == "shop"


def test_next_firing_is_told(store):
    """A worker sleeps until then."""
    assert tick(store).wait is None

    plan(store, cron="", interval=timedelta(hours=5), created_at=timezone.now())

    assert timedelta(hours=4, minutes=59) < tick(store).wait <= timedelta(hours=5)


def test_body_knows_its_firing(store):
    """In UTC, however late the job runs and whichever attempt it is (Q: which day is this report for?)."""
    from django_workqueue.testing import drain  # noqa: PLC0415 - the one test here that runs a body

    let_due(plan(store, task="tests.samples.scheduled_for", args="[]", cron="0 3 * * *"))
    tick(store)

    (attempt,) = drain()

    assert attempt.result == Schedule.objects.get().last_at.astimezone(UTC).isoformat()


def test_missed_firings_are_made_up_for_by_one(store):
    """Five minutes without a worker are one job, and then all goes on as ever (coldfront#464, sidekiq#4893)."""
    row = plan(store, cron="* * * * *")
    let_due(row, timedelta(minutes=5))

    assert ticked(store) == 1

    last = Schedule.objects.get().last_at
    assert timedelta() <= timezone.now() - last < timedelta(minutes=1, seconds=10)


def test_missed_firings_can_all_be_made_up_for(store):
    """One job each, in order."""
    row = plan(store, cron="* * * * *", catch_up="all", overlap="allow")
    let_due(row, timedelta(minutes=5))

    assert ticked(store) in {5, 6, 7}
    assert firings() == sorted(firings())
    assert len(set(firings())) == len(firings())


def test_missed_firings_can_be_skipped(store):
    """A firing that is hours late may be worse than none."""
    row = plan(store, cron="0 3 * * *", catch_up="skip")
    let_due(row, timedelta(minutes=90))

    assert ticked(store) == 0
    after = Schedule.objects.get()
    assert after.next_at > timezone.now()
    assert after.last_at is None


def test_firing_is_skipped_while_the_last_one_is_live(store, caplog):
    """A run that takes longer than its interval has no second one beside it."""
    row = plan(store)
    let_due(row)
    tick(store)
    first = Schedule.objects.get().last_at
    let_due(row, timedelta(minutes=2))

    with caplog.at_level(logging.INFO):
        assert ticked(store) == 1
    assert "is still live" in caplog.text
    assert Schedule.objects.get().last_at == first

    complete(store, claim_one(store))
    let_due(row)
    assert ticked(store) == 1
    assert Schedule.objects.get().last_at > first


def test_schedule_s_key_covers_its_job_to_the_end(store):
    """A task's own key may be free sooner; the schedule must not start a second run beside the first."""
    row = plan(store, task="tests.samples.keyed_for_a_while", args="[]")
    let_due(row)
    tick(store)

    job = Job.objects.get()
    assert (job.dedupe_key, job.dedupe_until_start, job.dedupe_expires_at) == (f"schedule:{row.name}", False, None)


def test_firings_may_overlap_where_that_is_allowed(store):
    """The choice of whoever makes the schedule."""
    row = plan(store, overlap="allow")
    for _ in range(3):
        let_due(row)
        tick(store)

    assert Job.objects.count() == 3


def test_firing_and_the_next_time_are_one_transaction(store):
    """Whoever dies in between has done neither."""
    row = plan(store)
    let_due(row)

    with transaction.atomic():
        assert tick(store).lanes
        transaction.set_rollback(True)

    assert Job.objects.count() == 0
    assert Schedule.objects.get().next_at < timezone.now()


@pytest.mark.django_db(transaction=True)
def test_racing_tickers_enqueue_one_job(store):
    """Any number of workers may look at once (knifecake/steady-queue#52, PR#54)."""
    rows = [plan(store, overlap="allow") for _ in range(5)]
    for row in rows:
        let_due(row)

    def look():
        mine = store_for()
        mine.prepare()
        ticked(mine)

    race(*[look] * 6)

    assert Job.objects.count() == 5
    assert len({job.decoded_metadata[SCHEDULE] for job in Job.objects.all()}) == 5


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_schedule_that_somebody_holds_does_not_hold_up_the_others(store):
    """On PostgreSQL a row that a person has locked is passed over, and fires later."""
    held, other = plan(store), plan(store)
    let_due(held)
    let_due(other)

    def look():
        mine = store_for()
        mine.prepare()
        return tick(mine)

    with transaction.atomic():
        Schedule.objects.select_for_update().get(pk=held.pk)
        (done,) = race(look)

    assert done.lanes
    assert [job.decoded_metadata[SCHEDULE] for job in Job.objects.all()] == [other.name]
    assert tick(store).lanes


def test_plan_that_changed_under_a_ticker_is_not_overwritten(store, monkeypatch):
    """On a database that locks no rows, the compare-and-set is what keeps a firing from happening twice."""
    row = plan(store)
    let_due(row)
    real = type(store).move_schedule

    def overtaken(self, held, columns):
        Schedule.objects.filter(pk=held.pk).update(next_at=held.next_at + timedelta(hours=1))
        return real(self, held, columns)

    monkeypatch.setattr(type(store), "move_schedule", overtaken)

    assert tick(store).lanes == set()
    assert Job.objects.count() == 0


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"cron": "61 * * * *"},
        {"cron": "0 0 30 2 *"},
        {"cron": ""},
        {"zone": "Mars/Olympus"},
        {"interval": timedelta(hours=1)},
        {"args": "[1,"},
        {"kwargs": "[]"},
        {"queue": ""},
        {"tenant": "x\ty"},
        {"priority": 300},
        {"catch_up": "never"},
        {"overlap": "maybe"},
        {"catch_up": "all"},
    ],
)
def test_bad_row_is_flagged_and_passed_over(store, bad, caplog):
    """Whatever a hand may have written, the others fire (certimate#906)."""
    broken, good = plan(store), plan(store)
    Schedule.objects.filter(pk=broken.pk).update(**bad)
    let_due(broken)
    let_due(good)
    with caplog.at_level(logging.ERROR):
        review(store)
        ticked(store)

    assert Job.objects.get().decoded_metadata[SCHEDULE] == good.name
    assert [record.getMessage().partition(" is passed over: ")[0] for record in caplog.records] == [
        f"Schedule {broken.name!r}"
    ]
    flagged = Schedule.objects.get(pk=broken.pk)
    assert flagged.fault
    assert flagged.next_at is None


def test_flagged_row_fires_again_once_it_is_mended(store):
    """By an update of whatever was wrong, which need not be its times."""
    row = plan(store, args="[1,")
    assert Schedule.objects.get().fault

    Schedule.objects.update(args="[1,2]")
    review(store)

    row.refresh_from_db()
    assert row.fault == ""
    let_due(row)
    assert ticked(store) == 1


def test_flagged_row_is_not_written_again_and_again(store, django_assert_num_queries):
    """A look at it is a read and nothing else."""
    plan(store, cron="61 * * * *")

    with django_assert_num_queries(1):
        review(store)


@pytest.mark.parametrize(("task", "args"), [("shop.tasks.of_the_next_version", "[]"), ("tests.samples.add", "[1]")])
def test_task_of_other_code_is_enqueued_and_flagged(store, task, args):
    """While a version is rolled out, the old one may tick for the new: what it does not know must not be lost."""
    let_due(plan(store, task=task, args=args))

    assert ticked(store) == 1

    row = Schedule.objects.get()
    assert row.next_at is not None
    assert task in row.fault


def test_error_in_a_task_s_own_key_does_not_stop_the_others(store, caplog):
    """The key is the user's code, and may raise anything."""
    broken = plan(store, task="tests.samples.keyed_badly", args="[]", overlap="allow")
    good = plan(store)
    let_due(broken)
    let_due(good)

    with caplog.at_level(logging.CRITICAL):
        assert ticked(store) == 1

    assert Schedule.objects.get(pk=broken.pk).fault == "no key today"


def test_database_error_of_one_schedule_does_not_stop_the_others(store, monkeypatch, caplog):
    """A deadlock, say; that schedule is still due afterwards."""
    unlucky, good = plan(store), plan(store)
    let_due(unlucky, timedelta(seconds=5))
    let_due(good)
    real = type(store).hold_schedule

    def flaky(self, pk):
        if pk == unlucky.pk:
            raise OperationalError("deadlock detected")
        return real(self, pk)

    monkeypatch.setattr(type(store), "is_unavailable", lambda self, error: False)
    monkeypatch.setattr(type(store), "hold_schedule", flaky)
    with caplog.at_level(logging.WARNING):
        assert tick(store).lanes
    assert "is tried again" in caplog.text

    assert tick(store).wait == timedelta()
    assert [job.decoded_metadata[SCHEDULE] for job in Job.objects.all()] == [good.name]


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.postgresql
def test_dueness_is_judged_by_the_clock_of_the_store(store, monkeypatch):
    """A worker's own clock, ten minutes fast, fires nothing early (kagkarlsson/db-scheduler#433)."""
    plan(store, cron="", interval=timedelta(minutes=5), created_at=timezone.now())
    fast = timezone.now() + timedelta(minutes=10)
    monkeypatch.setattr(timezone, "now", lambda: fast)

    assert ticked(store) == 0


def test_times_without_zones_pass_the_second_hour_over(settings, monkeypatch):
    """With USE_TZ = False the hour that comes twice cannot be told apart: nothing fires without end in it."""
    settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Berlin"
    row = Schedule(cron="*/15 * * * *", zone="Europe/Berlin", created_at=datetime(2026, 1, 1))  # noqa: DTZ001

    due, told = datetime(2026, 10, 25, 2, 30), []  # noqa: DTZ001
    for _ in range(3):
        due = module._next_at(row, due)
        told.append(f"{due:%H:%M}")

    assert told == ["02:45", "03:00", "03:15"]
