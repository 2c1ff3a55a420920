"""Changing when and where live jobs run, as operations of their screen."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.admin.models import CHANGE
from django.utils.translation import gettext_lazy, ngettext_lazy

from ..domain.states import JobState
from ..lifecycle import operate
from .operations import Operation, Options
from .options import MoveForm


def _run_now(job_id: UUID, database: str, options: Options) -> str:
    refused = operate.run_now([job_id], tenant=options["tenants"], database=database).refused
    return refused[0].problem if refused else ""


def _move(job_id: UUID, database: str, options: Options) -> str:
    given = {"queue": options.get("queue") or None, "priority": options.get("priority")}
    refused = operate.move([job_id], tenant=options["tenants"], database=database, **given).refused
    return refused[0].problem if refused else ""


JOBS: dict[str, Any] = {
    "permission": "reschedule",
    "selected": ngettext_lazy("%(count)s job is selected:", "%(count)s jobs are selected:", "count"),
    "left": ngettext_lazy("%(count)d job was left as it is.", "%(count)d jobs were left as they are.", "count"),
    "more": gettext_lazy("One request handles at most %(limit)d jobs. Repeat it for those that are left."),
    "log_flag": CHANGE,
}
RUN_NOW = Operation(
    **JOBS,
    name="run_now",
    label=gettext_lazy("Run now…"),
    every=gettext_lazy("Run all now…"),
    title=gettext_lazy("Run scheduled jobs now"),
    explanation=gettext_lazy(
        "A scheduled job is due at once, whether it was put off at its enqueue or waits for its next try. Jobs that "
        "are not scheduled are left as they are. How many run together is for the workers and the limits, as ever."
    ),
    button=gettext_lazy("Yes, run now"),
    done=ngettext_lazy("%(count)d job is due now.", "%(count)d jobs are due now.", "count"),
    act=_run_now,
    log_text=gettext_lazy("Made due at once."),
    applies_to=lambda job: job.state == JobState.SCHEDULED,
)
MOVE = Operation(
    **JOBS,
    name="move",
    label=gettext_lazy("Change queue or priority…"),
    every=gettext_lazy("Move all…"),
    title=gettext_lazy("Change queue or priority"),
    explanation=gettext_lazy(
        "Jobs that wait get the queue and the priority below, and keep their time, keys and attempts. A job that a "
        "worker holds is left as it is, and so is one whose dedupe key is taken in the other queue."
    ),
    button=gettext_lazy("Yes, change"),
    done=ngettext_lazy("%(count)d job was changed.", "%(count)d jobs were changed.", "count"),
    act=_move,
    log_text=gettext_lazy("Moved."),
    form=MoveForm,
    initial=lambda job: {"queue": job.queue, "priority": job.priority},
    applies_to=lambda job: job.state != JobState.LEASED,
)
