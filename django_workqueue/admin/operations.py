"""What a person may do to dead letters, and doing it to many: row by row, audited, up to a limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from ..lifecycle import operate
from ..models import DeadLetter
from ..store import store_for
from .keyset import Keyset

LIMIT = 1000
"""Dead letters handled by one request; it must end before a proxy gives it up."""
BATCH = 100
"""Rows held in memory at a time."""
PROBLEMS_TOLD = 5
"""Refusals told one by one: messages may travel in a cookie."""

Act = Callable[[UUID, str], str]
"""Does it to one id in a database. Answers why it was refused; empty when it was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing to do to dead letters: how it is asked for, done, told and logged."""

    name: str
    """Of the action and of the page; also of the permission, before ``_deadletter``."""
    title: Any
    explanation: Any
    button: Any
    done: Any
    """The sentence for a number of rows, ``%(count)d``."""
    act: Act
    log_flag: int
    log_text: Any


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
            told.append((messages.WARNING, self._refusals()))
        if self.more:
            limit = _("One request handles at most %(limit)d dead letters. Repeat it for those that are left.")
            told.append((messages.WARNING, limit % {"limit": LIMIT}))
        return told

    def _refusals(self) -> str:
        count, told = len(self.problems), self.problems[:PROBLEMS_TOLD]
        text = ngettext(
            "%(count)d dead letter was left as it is.", "%(count)d dead letters were left as they are.", count
        )
        if rest := count - len(told):
            told.append(ngettext("And %(count)d more.", "And %(count)d more.", rest) % {"count": rest})
        return " ".join([text % {"count": count}, *told])


def perform(operation: Operation, rows: QuerySet[DeadLetter], keyset: Keyset, *, user_id: Any, database: str) -> Tally:
    """Do ``operation`` to up to LIMIT of ``rows``, in the order of ``keyset``. A refusal does not stop it."""
    tally = Tally()
    for number, letter in enumerate(chain.from_iterable(keyset.batches(rows, BATCH))):
        if number == LIMIT:
            tally.more = True
            break
        problem = _perform_one(operation, letter, user_id, database)
        if problem:
            tally.problems.append(problem)
        else:
            tally.done += 1
    return tally


def _perform_one(operation: Operation, letter: DeadLetter, user_id: Any, database: str) -> str:
    """Change and log one row in one transaction: nothing is done untold, and no lock is held for long."""
    with store_for(database).transaction():
        problem = operation.act(letter.pk, database)
        if not problem:
            LogEntry.objects.log_actions(user_id, [letter], operation.log_flag, str(operation.log_text))
    return problem


def _requeue(job_id: UUID, database: str) -> str:
    refused = operate.requeue([job_id], database=database).refused
    return refused[0].problem if refused else ""


def _discard(job_id: UUID, database: str) -> str:
    gone = operate.discard([job_id], database=database)
    return "" if gone else _("Dead letter %(id)s is no longer there.") % {"id": job_id}


REQUEUE = Operation(
    name="requeue",
    title=gettext_lazy("Requeue dead letters"),
    explanation=gettext_lazy(
        "A requeued dead letter becomes ready at once, under its own id and with fresh attempts; its "
        "failures so far stay on record. One whose id or dedupe key is live again is left as it is."
    ),
    button=gettext_lazy("Yes, requeue"),
    done=ngettext_lazy("%(count)d dead letter was requeued.", "%(count)d dead letters were requeued.", "count"),
    act=_requeue,
    log_flag=CHANGE,
    log_text=gettext_lazy("Requeued."),
)
DISCARD = Operation(
    name="discard",
    title=gettext_lazy("Discard dead letters"),
    explanation=gettext_lazy(
        "A discarded dead letter is deleted with all its failures and never runs again. This cannot be undone."
    ),
    button=gettext_lazy("Yes, discard"),
    done=ngettext_lazy("%(count)d dead letter was discarded.", "%(count)d dead letters were discarded.", "count"),
    act=_discard,
    log_flag=DELETION,
    log_text=gettext_lazy("Discarded."),
)
