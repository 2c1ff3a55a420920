"""The rows of schedules: which are due, and moving one on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Value
from django.db.models.fields import DateTimeField

from ..domain.states import Origin
from ..exceptions import ScheduleNotFoundError
from ..models import Firing, Schedule
from .base import BaseStore

FIRINGS_KEPT = 50
"""Firings of a schedule whose history is kept: enough to see what it does, and no table that grows."""


class Upcoming(NamedTuple):
    """A schedule that will fire, and how long until then by the database's clock: zero or less when it is due."""

    id: int
    wait: timedelta


class Scheduling(BaseStore):
    """Reading schedules, and moving them on. What a firing is, and what it enqueues, is for ``lifecycle`` to say."""

    def upcoming_schedules(self, *, limit: int = 100) -> list[Upcoming]:
        """Return the ``limit`` schedules that fire next, soonest first."""
        ahead = Schedule.objects.using(self.alias).filter(enabled=True, next_at__isnull=False).order_by("next_at")
        clock = self.clock()
        now = Value(clock, DateTimeField()) if isinstance(clock, datetime) else clock
        rows = ahead.annotate(read_at=now).values_list("pk", "next_at", "read_at")[:limit]
        return [Upcoming(pk, next_at - read_at) for pk, next_at, read_at in rows]

    def schedules_behind(self, pk: int, *, limit: int = 1000) -> list[Schedule]:
        """Return up to ``limit`` schedules whose ids are greater than ``pk``, in order."""
        return list(Schedule.objects.using(self.alias).filter(pk__gt=pk).order_by("pk")[:limit])

    def schedules_of(self, names: Iterable[str]) -> dict[str, Schedule]:
        """Return the schedules of these names that are there."""
        return Schedule.objects.using(self.alias).in_bulk(list(names), field_name="name")

    def hold_schedule(self, pk: int) -> Schedule | None:
        """Lock a schedule until the caller's transaction ends; None when somebody else holds it, or it is gone."""
        return self._unheld(Schedule.objects.using(self.alias).filter(pk=pk)).first()

    def await_schedule(self, **key: Any) -> Schedule:
        """Lock the schedule of this ``name`` or ``pk``, waiting for it. Raises ScheduleNotFoundError."""
        rows = Schedule.objects.using(self.alias).filter(**key)
        if self.connection.features.has_select_for_update:
            rows = rows.select_for_update(of=("self",))
        row = rows.first()
        if row is None:
            raise ScheduleNotFoundError(*key.values())
        return row

    def move_schedule(self, row: Schedule, columns: dict[str, Any]) -> bool:
        """
        Change a schedule as it was read, and return whether it still was so.

        Of any number who read the same plan one gets through, also on a database that locks no rows.
        """
        unmoved = Schedule.objects.using(self.alias).filter(pk=row.pk, plan=row.plan, next_at=row.next_at)
        return bool(unmoved.update(**columns))

    def note_firings(self, row: Schedule, firings: Iterable[Firing]) -> None:
        """Add to a schedule's history, of which the newest FIRINGS_KEPT stay. The caller holds the schedule."""
        history = Firing.objects.using(self.alias).filter(schedule=row)
        history.bulk_create(firings)
        last = history.order_by("-id").values_list("id", flat=True)[FIRINGS_KEPT : FIRINGS_KEPT + 1].first()
        if last is not None:
            history.filter(id__lte=last).delete()

    def add_schedules(self, rows: Sequence[Schedule]) -> None:
        """Store schedules; one whose name is taken is left out."""
        Schedule.objects.using(self.alias).bulk_create(rows, ignore_conflicts=True)

    def code_schedules(self) -> list[Schedule]:
        """Return the schedules that are, or were, defined in code."""
        return list(Schedule.objects.using(self.alias).filter(origin=Origin.CODE).order_by("name"))

    def create_schedule(self, row: Schedule) -> None:
        """Store a new schedule."""
        row.save(using=self.alias, force_insert=True)

    def delete_schedule(self, pk: int) -> None:
        """Delete a schedule. Its jobs stay."""
        Schedule.objects.using(self.alias).filter(pk=pk).delete()
