"""Rollups grow old: those of minutes are added up into hours after a day, and go when their time is over."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from django.db import IntegrityError
from django.db.models import QuerySet

from ..models import QueueMinute
from .base import BaseStore

KEPT_BY_MINUTE = timedelta(hours=25)
"""How long minutes are told apart: longer than the longest range whose bars are shorter than an hour."""

Hour = tuple[datetime, str, str]
"""When it begins, a queue and a task."""


class Rollups(BaseStore):
    """Keeping the table of rollups small, so that a month can be added up while somebody waits for the page."""

    def _fold_minutes(self, batch: int, retention: timedelta) -> int:
        """
        Add up to ``batch`` rollups of minutes that are long over to those of their hours; return how many they were.

        Each is counted in one place at every moment. Of two who do it at the same time one passes over what the other
        holds; where both would begin the same hour, the second lets it be until the next round.
        """
        try:
            with self.writing():
                minutes = list(self._unheld(self._long_over(retention).order_by("minute"))[:batch])
                self._add_to_hours(minutes)
                self._rollups().filter(pk__in=[each.pk for each in minutes]).delete()
        except IntegrityError:
            return 0
        return len(minutes)

    def _long_over(self, retention: timedelta) -> QuerySet[QueueMinute]:
        now = self.now()
        return self._rollups().filter(is_hour=False, minute__lt=now - KEPT_BY_MINUTE, minute__gte=now - retention)

    def _old_minutes(self, retention: timedelta) -> QuerySet[QueueMinute]:
        return self._rollups().filter(minute__lt=self.now() - retention).order_by("minute")

    def _prune_minutes(self, over: QuerySet[QueueMinute], batch: int) -> int:
        ids = list(over.values_list("pk", flat=True)[:batch])
        return self._rollups().filter(pk__in=ids).delete()[0] if ids else 0

    def _rollups(self) -> QuerySet[QueueMinute]:
        return QueueMinute.objects.using(self.alias)

    def _add_to_hours(self, minutes: Iterable[QueueMinute]) -> None:
        sums: dict[Hour, QueueMinute] = {}
        for each in minutes:
            key = _hour_of(each)
            _add(sums.setdefault(key, _empty(key)), each)
        known = self._hours(sums)
        for key, hour in known.items():
            _add(hour, sums.pop(key))
        self._rollups().bulk_update(known.values(), ("done", "failed", "dead", "wait_histogram", "run_histogram"))
        self._rollups().bulk_create(sums[key] for key in sorted(sums))

    def _hours(self, keys: Collection[Hour]) -> dict[Hour, QueueMinute]:
        """Return those of these hours that there are, locked where rows can be: what is added to them stays added."""
        rows = self._rollups().filter(is_hour=True, minute__in={begin for begin, _queue, _task in keys}).order_by("pk")
        locked: Any = rows.select_for_update() if self.connection.features.has_select_for_update else rows
        return {key: row for row in locked if (key := _hour_of(row)) in keys}


def _hour_of(row: QueueMinute) -> Hour:
    return row.minute.replace(minute=0, second=0, microsecond=0), row.queue, row.task


def _empty(key: Hour) -> QueueMinute:
    begin, queue, task = key
    return QueueMinute(minute=begin, queue=queue, task=task, worker="", is_hour=True)


def _add(total: QueueMinute, more: QueueMinute) -> None:
    total.done += more.done
    total.failed += more.failed
    total.dead += more.dead
    total.wait_histogram = _together(total.wait_histogram, more.wait_histogram)
    total.run_histogram = _together(total.run_histogram, more.run_histogram)


def _together(*histograms: str) -> str:
    counts = (map(int, text.split(",")) for text in histograms if text)
    return ",".join(str(sum(column)) for column in zip_longest(*counts, fillvalue=0))
