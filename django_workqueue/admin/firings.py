"""What became of the firings of schedules: when each was due, how late it fired, and where its job is by now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.http import HttpRequest
from django.utils.translation import gettext as _

from ..domain.states import DeathReason, Ending, JobState
from ..models import DeadLetter, FinishedJob, Firing, Job, Schedule
from .changelist import BoundedChangeList
from .overview import Links
from .words import age, coloured, duration


@dataclass(frozen=True, slots=True)
class FiringRow:
    """One firing as a page shows it."""

    job_id: UUID
    address: str
    """Of the job, wherever it is; empty where the user may not see jobs."""
    due: str
    fired: str
    late: str
    """How long after it was due it fired; by hand, never."""
    state: str


class ScheduleChangeList(BoundedChangeList):
    """The list of schedules, each with its last firing."""

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and the last firings of its rows by the same few statements for all."""
        super().get_results(request)
        database = self.queryset.db
        last = _last_firings(self.result_list, database)
        states = states_of([each.job_id for each in last.values()], database)
        for row in self.result_list:
            firing = last.get(row.pk)
            row.last_state = "" if firing is None else state_of(firing, states)
            row.last_late = timedelta() if firing is None else lateness(firing)


def history_of(row: Any, links: Links, database: str) -> list[FiringRow]:
    """Return the firings that are kept of a schedule, newest first."""
    firings = list(Firing.objects.using(database).filter(schedule=row.pk).order_by("-id"))
    states = states_of([each.job_id for each in firings], database)
    return [_row(each, row.read_at, state_of(each, states), links) for each in firings]


def states_of(ids: Collection[UUID], database: str) -> dict[UUID, str]:
    """Return where jobs are, in words with a colour, by three statements; those that are kept no more are left out."""
    live = Job.objects.using(database).filter(pk__in=ids).values_list("pk", "state")
    finished = FinishedJob.objects.using(database).filter(pk__in=ids).values_list("pk", "outcome")
    dead = DeadLetter.objects.using(database).filter(pk__in=ids).values_list("pk", "reason")
    found = {pk: coloured("idle", str(JobState(state).label)) for pk, state in live}
    good = Ending.SUCCEEDED
    found |= {pk: coloured("good" if end == good else "idle", str(Ending(end).label)) for pk, end in finished}
    found |= {pk: coloured("bad", _("Dead: %(why)s") % {"why": DeathReason(why).label}) for pk, why in dead}
    return found


def state_of(firing: Firing, states: dict[UUID, str]) -> str:
    """Return what became of a firing."""
    if firing.skipped:
        return coloured("idle", _("Skipped: the job of an earlier firing was live"))
    return states.get(firing.job_id) or _("No longer kept")


def lateness(firing: Firing) -> timedelta:
    """Return how long after it was due it fired."""
    return firing.fired_at - firing.due_at if firing.due_at else timedelta()


def _last_firings(rows: Iterable[Schedule], database: str) -> dict[int, Firing]:
    firings = Firing.objects.using(database)
    ends = firings.filter(schedule__in=[row.pk for row in rows]).order_by().values("schedule").annotate(last=Max("id"))
    return {each.schedule_id: each for each in firings.filter(pk__in=[end["last"] for end in ends])}


def _row(firing: Firing, now: datetime, state: str, links: Links) -> FiringRow:
    return FiringRow(
        job_id=firing.job_id,
        address=links.to("job", firing.job_id),
        due=age(firing.due_at, now) if firing.due_at else _("by hand"),
        fired=age(firing.fired_at, now),
        late=duration(lateness(firing)) if firing.due_at else "-",
        state=state,
    )
