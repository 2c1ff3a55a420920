"""What a person may decide about dead letters, as operations of their screen."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.admin.models import CHANGE, DELETION
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from ..exceptions import WorkQueueError
from ..lifecycle import operate
from .operations import Operation, Options
from .options import AmendForm, NoteForm, ReasonForm, RequeueForm, stored_json
from .revealing import veil_of


def _gone(job_id: UUID) -> str:
    return _("Dead letter %(id)s is no longer there.") % {"id": job_id}


def _given(options: Options, database: str) -> dict[str, Any]:
    queue = options.get("queue") or None
    return {"attempts": options.get("attempts"), "queue": queue, "tenant": options["tenants"], "database": database}


def _requeue(job_id: UUID, database: str, options: Options) -> str:
    given = _given(options, database)
    replay = UUID(options["replay"])
    refused = operate.requeue([job_id], replay=replay, spread=RequeueForm.spread(options), **given).refused
    return refused[0].problem if refused else ""


def _amend(job_id: UUID, database: str, options: Options) -> str:
    given = _given(options, database)
    try:
        operate.amend(job_id, args=options["args"], kwargs=options["kwargs"], **given)
    except WorkQueueError as error:
        return str(error)
    return ""


def _discard(job_id: UUID, database: str, options: Options) -> str:
    return "" if operate.discard([job_id], tenant=options["tenants"], database=database) else _gone(job_id)


def _acknowledge(job_id: UUID, database: str, options: Options) -> str:
    given = {"tenant": options["tenants"], "database": database}
    seen = operate.acknowledge([job_id], by=options["by"], note=options.get("note", ""), **given)
    return "" if seen else _gone(job_id)


LETTERS: dict[str, Any] = {
    "selected": ngettext_lazy("%(count)s dead letter is selected:", "%(count)s dead letters are selected:", "count"),
    "left": ngettext_lazy(
        "%(count)d dead letter was left as it is.", "%(count)d dead letters were left as they are.", "count"
    ),
    "more": gettext_lazy("One request handles at most %(limit)d dead letters. Repeat it for those that are left."),
}
REQUEUED = ngettext_lazy("%(count)d dead letter was requeued.", "%(count)d dead letters were requeued.", "count")
REQUEUE = Operation(
    **LETTERS,
    name="requeue",
    permission="requeue",
    label=gettext_lazy("Requeue…"),
    every=gettext_lazy("Requeue all…"),
    title=gettext_lazy("Requeue dead letters"),
    explanation=gettext_lazy(
        "A requeued dead letter becomes ready at once, or at a moment within the time that you give, under its own id "
        "and with fresh attempts; its failures so far stay on record. One whose id or dedupe key is live again is left "
        "as it is."
    ),
    button=gettext_lazy("Yes, requeue"),
    done=REQUEUED,
    act=_requeue,
    log_flag=CHANGE,
    log_text=gettext_lazy("Requeued."),
    form=RequeueForm,
)
AMEND = Operation(
    **LETTERS,
    name="amend",
    permission="amend",
    label=gettext_lazy("Requeue with other arguments…"),
    title=gettext_lazy("Requeue with other arguments"),
    explanation=gettext_lazy(
        "The job comes back under its own id with the arguments below; those that it had are not kept. They are "
        "checked as at an enqueue. Keys that were made of the old arguments stay as they are. Where [masked] stands, "
        "the value stays as it was."
    ),
    button=gettext_lazy("Yes, requeue"),
    done=REQUEUED,
    act=_amend,
    log_flag=CHANGE,
    log_text=gettext_lazy("Requeued with other arguments."),
    form=AmendForm,
    initial=lambda letter: {name: stored_json(veil_of(letter).columns[name]) for name in ("args", "kwargs")},
    single=True,
)
DISCARD = Operation(
    **LETTERS,
    name="discard",
    permission="discard",
    label=gettext_lazy("Discard…"),
    every=gettext_lazy("Discard all…"),
    title=gettext_lazy("Discard dead letters"),
    explanation=gettext_lazy(
        "A discarded dead letter is deleted with all its failures and never runs again. This cannot be undone."
    ),
    button=gettext_lazy("Yes, discard"),
    is_final=True,
    done=ngettext_lazy("%(count)d dead letter was discarded.", "%(count)d dead letters were discarded.", "count"),
    act=_discard,
    log_flag=DELETION,
    log_text=gettext_lazy("Discarded."),
    form=ReasonForm,
)
ACKNOWLEDGE = Operation(
    **LETTERS,
    name="acknowledge",
    permission="acknowledge",
    label=gettext_lazy("Acknowledge…"),
    every=gettext_lazy("Acknowledge all…"),
    title=gettext_lazy("Acknowledge dead letters"),
    explanation=gettext_lazy(
        "An acknowledged dead letter stays where it is, and shows your name and your note to whoever looks next."
    ),
    button=gettext_lazy("Yes, acknowledge"),
    done=ngettext_lazy("%(count)d dead letter was acknowledged.", "%(count)d dead letters were acknowledged.", "count"),
    act=_acknowledge,
    log_flag=CHANGE,
    log_text=gettext_lazy("Acknowledged."),
    form=NoteForm,
)
