"""What a job has done once, as its page shows it: a person decides about a step that is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from ..domain.states import StepState
from ..models import Step
from ..models.base import JobColumns
from .words import age, read_at

SHOWN = 100
"""Steps on one page."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One step. Times are told as seen from ``now``; what it returned stays in the database."""

    step: Step
    now: datetime

    @property
    def state(self) -> str:
        """How far it came."""
        if self.step.state == StepState.DONE and not self.step.outcome:
            return _("Done, outcome not stored")
        return self.step.get_state_display()

    @property
    def begun(self) -> str:
        """When its function was called."""
        return age(self.step.begun_at, self.now)

    @property
    def done(self) -> str:
        """When its outcome was recorded."""
        return age(self.step.done_at, self.now)


def steps_of(job: JobColumns, database: str) -> list[Taken]:
    """Read the first steps of ``job``, wherever it is now, by one statement."""
    rows = Step.objects.using(database).filter(job_id=job.pk, tenant=job.tenant).order_by("begun_at", "pk")
    return [Taken(row, read_at(job)) for row in rows[:SHOWN]]
