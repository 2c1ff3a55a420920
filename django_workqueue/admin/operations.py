"""What a person may do to rows, and doing it to many: row by row, audited, up to a limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from ..domain.states import JobState
from ..exceptions import InvalidJobError, PayloadError
from ..lifecycle import operate
from ..lifecycle.keyset import Keyset
from ..store import store_for
from .options import OptionsForm

LIMIT = 1000
"""Rows handled by one request; it must end before a proxy gives it up."""
BATCH = 100
"""Rows held in memory at a time."""
PROBLEMS_TOLD = 5
"""Refusals told one by one: messages may travel in a cookie."""

Options = Mapping[str, Any]
"""
What a person asked for beside the operation itself, as its form has cleaned it. ``by`` is that person's name,
``tenants`` whose rows that person may touch, None for all.
"""
Act = Callable[[Any, str, Options], str]
"""Does it to the row with one key in a database. Answers why it was refused; empty when it was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing to do to rows: how it is asked for, done, told and logged."""

    name: str
    """Of the action and of the page."""
    permission: str
    """Of the permission, before the name of the model."""
    label: Any
    """Of the link on the page of one row."""
    title: Any
    explanation: Any
    button: Any
    selected: Any
    """The sentence for a number of rows, ``%(count)s``, that it is about to be done to."""
    done: Any
    """The sentence for a number of rows that it was done to."""
    left: Any
    """The sentence for a number of rows that were refused."""
    more: Any
    """The sentence for rows beyond the limit, ``%(limit)d``."""
    act: Act
    log_flag: int
    log_text: Any
    applies_to: Callable[[Any], bool] = lambda _row: True
    """Whether the page of a row offers it."""
    form: type[OptionsForm] | None = None
    """What may be asked beside."""
    initial: Callable[[Any], dict[str, Any]] = lambda _row: {}
    """What its form shows at first on the page of a row."""
    is_final: bool = False
    """Whether it cannot be taken back; its button warns."""
    single: bool = False
    """Whether it makes sense for one row alone."""
    every: Any = ""
    """Of the link that does it to all rows that match; without one there is no such link."""

    def logged(self, options: Options) -> str:
        """Return what the log says: what was done, how and why."""
        return " ".join(filter(None, (str(self.log_text), self.form.told(options) if self.form else "")))


@dataclass(slots=True)
class Tally:
    """What became of the rows. ``more`` tells that LIMIT ended the work before the rows did."""

    done: int = 0
    problems: list[str] = field(default_factory=list)
    more: bool = False

    def tell(self, operation: Operation) -> list[tuple[int, str]]:
        """Return the sentences to show, each with its level."""
        told = []
        if self.done:
            told.append((messages.SUCCESS, operation.done % {"count": self.done}))
        if self.problems:
            told.append((messages.WARNING, self._refusals(operation)))
        if self.more:
            told.append((messages.WARNING, operation.more % {"limit": LIMIT}))
        return told

    def _refusals(self, operation: Operation) -> str:
        count, told = len(self.problems), self.problems[:PROBLEMS_TOLD]
        if rest := count - len(told):
            told.append(ngettext("And %(count)d more.", "And %(count)d more.", rest) % {"count": rest})
        return " ".join([operation.left % {"count": count}, *told])


def perform(
    operation: Operation,
    rows: QuerySet[Any],
    keyset: Keyset,
    *,
    user_id: Any,
    database: str,
    options: Options,
) -> Tally:
    """Do ``operation`` to up to LIMIT of ``rows``, in the order of ``keyset``. A refusal does not stop it."""
    tally = Tally()
    for number, row in enumerate(chain.from_iterable(keyset.batches(rows, BATCH))):
        if number == LIMIT:
            tally.more = True
            break
        problem = perform_one(operation, row, user_id, database, options)
        if problem:
            tally.problems.append(problem)
        else:
            tally.done += 1
    return tally


def perform_one(operation: Operation, row: Any, user_id: Any, database: str, options: Options) -> str:
    """Change and log one row in one transaction: nothing is done untold, and no lock is held for long."""
    try:
        # What is looked up first is written then: on SQLite, a transaction that began as a reader may not be let to.
        with store_for(database).writing():
            problem = operation.act(row.pk, database, options)
            if not problem:
                LogEntry.objects.log_actions(user_id, [row], operation.log_flag, operation.logged(options))
    except (InvalidJobError, PayloadError) as error:
        # A row may have a name that nothing new could have.
        return str(error)
    return problem


def _cancel(job_id: Any, database: str, options: Options) -> str:
    refused = operate.cancel([job_id], tenant=options["tenants"], database=database).refused
    return refused[0].problem if refused else ""


def _force(job_id: Any, database: str, options: Options) -> str:
    refused = operate.cancel([job_id], force=True, tenant=options["tenants"], database=database).refused
    return refused[0].problem if refused else ""


JOBS: dict[str, Any] = {
    "permission": "cancel",
    "selected": ngettext_lazy("%(count)s job is selected:", "%(count)s jobs are selected:", "count"),
    "done": ngettext_lazy(
        "%(count)d job was cancelled, or asked to end.", "%(count)d jobs were cancelled, or asked to end.", "count"
    ),
    "left": ngettext_lazy("%(count)d job was left as it is.", "%(count)d jobs were left as they are.", "count"),
    "more": gettext_lazy("One request handles at most %(limit)d jobs. Repeat it for those that are left."),
    "log_flag": CHANGE,
}
CANCEL = Operation(
    **JOBS,
    name="cancel",
    label=gettext_lazy("Cancel…"),
    every=gettext_lazy("Cancel all…"),
    title=gettext_lazy("Cancel jobs"),
    explanation=gettext_lazy(
        "A job that waits is over at once. One that runs is asked to end: a coroutine is cancelled, a function notices "
        "if it looks. No other attempt begins."
    ),
    button=gettext_lazy("Yes, cancel"),
    is_final=True,
    act=_cancel,
    log_text=gettext_lazy("Cancelled."),
)
FORCE_CANCEL = Operation(
    **JOBS,
    name="force_cancel",
    label=gettext_lazy("Cancel by force…"),
    title=gettext_lazy("Cancel jobs by force"),
    explanation=gettext_lazy(
        "As a cancel; and an attempt that does not end is treated as if its time were over: an error is raised in its "
        "thread, and if that does not help, its worker starts over once its other jobs have ended."
    ),
    button=gettext_lazy("Yes, cancel by force"),
    is_final=True,
    act=_force,
    log_text=gettext_lazy("Cancelled by force."),
    applies_to=lambda job: job.state == JobState.LEASED,
)
