"""What a person may do to a schedule from its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.admin.models import CHANGE
from django.utils.translation import gettext_lazy, ngettext_lazy

from ..exceptions import WorkQueueError
from ..lifecycle import reschedule
from ..models import Schedule
from .operations import Act, Operation, Options


def _acting(act: Callable[..., bool], vain: Any) -> Act:
    """Return what does ``act`` to the schedule with a key, and says ``vain`` where it changes nothing."""

    def do(pk: int, database: str, _options: Options) -> str:
        name = Schedule.objects.using(database).values_list("name", flat=True).filter(pk=pk).first()
        try:
            return "" if act(name or "", database=database) else str(vain) % {"name": name}
        except WorkQueueError as error:
            return str(error)

    return do


def _run(name: str, *, database: str) -> bool:
    return not reschedule.run_once(name, database=database).duplicate


SCHEDULES: dict[str, Any] = {
    "selected": ngettext_lazy("%(count)s schedule is selected:", "%(count)s schedules are selected:", "count"),
    "left": ngettext_lazy(
        "%(count)d schedule was left as it is.", "%(count)d schedules were left as they are.", "count"
    ),
    "more": gettext_lazy("One request handles at most %(limit)d schedules. Repeat it for those that are left."),
    "log_flag": CHANGE,
}
RUN = Operation(
    **SCHEDULES,
    name="run_once",
    permission="run",
    label=gettext_lazy("Run once now…"),
    title=gettext_lazy("Run schedules once now"),
    explanation=gettext_lazy("A job is enqueued now, whether the schedule is on or off. Its next firing stays."),
    button=gettext_lazy("Yes, run once"),
    done=ngettext_lazy("%(count)d job was enqueued.", "%(count)d jobs were enqueued.", "count"),
    act=_acting(_run, gettext_lazy("The job of an earlier firing of %(name)s is still live.")),
    log_text=gettext_lazy("Run once."),
)
SWITCH_ON = Operation(
    **SCHEDULES,
    name="switch_on",
    permission="switch",
    label=gettext_lazy("Switch on…"),
    title=gettext_lazy("Switch schedules on"),
    explanation=gettext_lazy("It fires from its next firing on. What it missed while it was off is not made up for."),
    button=gettext_lazy("Yes, switch on"),
    done=ngettext_lazy("%(count)d schedule was switched on.", "%(count)d schedules were switched on.", "count"),
    act=_acting(reschedule.switch_on, gettext_lazy("%(name)s was on.")),
    log_text=gettext_lazy("Switched on."),
    applies_to=lambda row: not row.enabled,
)
SWITCH_OFF = Operation(
    **SCHEDULES,
    name="switch_off",
    permission="switch",
    label=gettext_lazy("Switch off…"),
    title=gettext_lazy("Switch schedules off"),
    explanation=gettext_lazy("It fires no more, until it is switched on. Its jobs that wait or run stay."),
    button=gettext_lazy("Yes, switch off"),
    done=ngettext_lazy("%(count)d schedule was switched off.", "%(count)d schedules were switched off.", "count"),
    act=_acting(reschedule.switch_off, gettext_lazy("%(name)s was off.")),
    log_text=gettext_lazy("Switched off."),
    applies_to=lambda row: row.enabled,
)
