"""The times of a job in a row, from its enqueue to its end, with how long it took from each to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from ..domain.states import JobState
from ..models import DeadLetter, FinishedJob, Job
from ..models.base import JobColumns
from .failures import History
from .words import age, duration, read_at


@dataclass(frozen=True, slots=True)
class Stage:
    """One moment. What lies ahead is told as well: when a scheduled job is due."""

    label: str
    when: str
    took: str
    """From the moment before; empty for the first."""


def timeline(row: JobColumns, history: History) -> list[Stage]:
    """Return the moments of ``row`` that are on record, in their order."""
    moments = sorted(_moments(row, history), key=lambda each: each[1])
    now, told, before = read_at(row), [], None
    for label, moment in moments:
        took = duration(max(moment - before, timedelta())) if before else ""
        told.append(Stage(label, age(moment, now), took))
        before = moment
    return told


def _moments(row: Any, history: History) -> Iterator[tuple[str, datetime]]:
    yield _("Enqueued"), row.enqueued_at
    if history.attempts:
        yield _("First failed"), history.attempts[0].failure.failed_at
    match row:
        case Job():
            yield from _live(row)
        case FinishedJob():
            if row.started_at:
                yield _("Started"), row.started_at
            yield row.get_outcome_display(), row.finished_at
        case DeadLetter():
            if history.attempts:
                yield _("Last attempt"), history.attempts[-1].failure.started_at
            yield _("Died"), row.died_at


def _live(row: Job) -> Iterator[tuple[str, datetime]]:
    yield _("Due") if row.state == JobState.SCHEDULED else _("Ready"), row.ready_at
    if row.lease is not None:
        yield _("Claimed"), row.lease.acquired_at
    if row.cancel_requested_at:
        yield _("Cancel requested"), row.cancel_requested_at
