"""Schedules: who is due, and moving one on exactly once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ...domain.ids import new_id
from ...domain.states import Origin
from ...exceptions import ScheduleNotFoundError
from ...lifecycle.schedule import review, tick
from ...models import Firing, Job, Schedule
from ...store.schedules import FIRINGS_KEPT
from .base import ConformanceBase

HOUR = timedelta(hours=1)
TASK = "conformance.nothing"
"""No process knows it, which is no reason not to enqueue it."""


class SchedulingConformance(ConformanceBase):
    """Guarantees of schedules."""

    def test_upcoming_schedules_come_soonest_first(self) -> None:
        """Whoever has few hands must not take the later one; what is off, or over, is not among them."""
        later, sooner = self._schedule("later", 2 * HOUR), self._schedule("sooner", HOUR)
        self._schedule("off", HOUR, enabled=False)
        self._schedule("over", None)

        found = self.store.upcoming_schedules()

        assert [each.id for each in found] == [sooner.pk, later.pk]
        assert HOUR - timedelta(minutes=1) < found[0].wait <= HOUR
        assert len(self.store.upcoming_schedules(limit=1)) == 1

    def test_schedule_is_due_when_its_time_has_come(self) -> None:
        """By the clock of the store."""
        self._schedule("hourly", HOUR)

        self.advance(3601)

        (found,) = self.store.upcoming_schedules()
        assert found.wait <= timedelta()

    def test_time_that_a_test_lets_pass_is_remembered(self) -> None:
        """The firing is one of the calendar: which it was must not change with the rows."""
        row = self._schedule("hourly", HOUR)

        self.advance(1800)

        after = Schedule.objects.using(self.store.alias).get(pk=row.pk)
        assert row.next_at is not None
        assert after.next_at is not None
        assert after.skew == timedelta(seconds=1800)
        assert after.next_at + after.skew == row.next_at

    def test_history_keeps_the_newest_firings(self) -> None:
        """Of each schedule by itself: one that fires every minute leaves another its history, and no table grows."""
        often, seldom = self._schedule("often", HOUR), self._schedule("seldom", HOUR)
        self.store.note_firings(seldom, [self._firing(seldom)])
        for _ in range(3):
            self.store.note_firings(often, [self._firing(often) for _ in range(FIRINGS_KEPT // 2)])

        kept = Firing.objects.using(self.store.alias).order_by("id")
        newest = self._firing(often)
        self.store.note_firings(often, [newest])

        assert kept.filter(schedule=often).count() == FIRINGS_KEPT
        assert kept.filter(schedule=often).values_list("job_id", flat=True).last() == newest.job_id
        assert kept.filter(schedule=seldom).count() == 1

    def _firing(self, row: Schedule) -> Firing:
        return Firing(schedule=row, fired_at=self.store.now(), job_id=new_id())

    def test_schedule_moves_on_as_it_was_read(self) -> None:
        """Of two that read the same plan the second gets nothing done: each firing is enqueued once."""
        row = self._schedule("hourly", HOUR)
        first, second = (self.store.hold_schedule(row.pk) for _ in range(2))
        assert first is not None
        assert second is not None
        assert first.next_at is not None

        assert self.store.move_schedule(first, {"next_at": first.next_at + HOUR})
        assert not self.store.move_schedule(second, {"next_at": first.next_at + 2 * HOUR})

        after = self.store.schedules_of(["hourly"])["hourly"]
        assert after.next_at == first.next_at + HOUR

    def test_name_that_is_taken_is_left_out(self) -> None:
        """Two processes may register the same code at once."""
        self._schedule("hourly", HOUR)

        self.store.add_schedules([self._row("hourly", task="another"), self._row("daily")])

        found = self.store.schedules_of(["hourly", "daily", "weekly"])
        assert {name: row.task for name, row in found.items()} == {"hourly": TASK, "daily": TASK}

    def test_unknown_schedule_is_not_found(self) -> None:
        """By its name, or when it is gone."""
        with self.assertRaises(ScheduleNotFoundError):
            self.store.await_schedule(name="weekly")
        assert self.store.hold_schedule(0) is None

    def test_schedules_of_the_code_are_told_from_others(self) -> None:
        """A sync must not touch what a person has made."""
        self._schedule("mine", HOUR)
        ours = self._schedule("ours", HOUR, origin=Origin.CODE)

        assert [row.pk for row in self.store.code_schedules()] == [ours.pk]

    def test_long_lists_are_read_in_pages(self) -> None:
        """However many there are, one look is bounded."""
        rows = [self._schedule(f"schedule-{number}", HOUR) for number in range(3)]

        page = self.store.schedules_behind(0, limit=2)

        assert [row.pk for row in page] == [row.pk for row in rows[:2]]
        assert [row.pk for row in self.store.schedules_behind(page[-1].pk)] == [rows[2].pk]

    def test_each_firing_is_one_job(self) -> None:
        """However often the store is looked at, and whatever time passes in between."""
        self.store.create_schedule(self._row("hourly", interval=HOUR, overlap="allow"))
        review(self.store)
        for _ in range(4):
            self.advance(1800)
            for _ in range(3):
                tick(self.store)

        metadata = [job.decoded_metadata for job in Job.objects.using(self.store.alias).order_by("id")]
        assert len(metadata) == 2
        assert len({each["_scheduled_for"] for each in metadata}) == 2

    def _row(self, name: str, **columns: Any) -> Schedule:
        return Schedule(**{"name": name, "task": TASK, "zone": "UTC", "created_at": self.store.now()} | columns)

    def _schedule(self, name: str, wait: timedelta | None, **columns: Any) -> Schedule:
        """Store a schedule that fires after ``wait``."""
        next_at = None if wait is None else self.store.now() + wait
        row = self._row(name, next_at=next_at, interval=HOUR, **columns)
        row.plan = row.digest
        self.store.create_schedule(row)
        return row
