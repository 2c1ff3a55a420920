"""What a person may ask of worker processes, as operations of their screen."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import CHANGE, DELETION
from django.utils.translation import gettext_lazy, ngettext_lazy

from ..exceptions import WorkQueueError
from ..lifecycle import operate
from ..models import Worker
from ..models.worker import WorkerRequest
from .operations import Act, Operation, Options
from .options import ReasonForm
from .words import read_at


def is_silent(worker: Worker) -> bool:
    """Whether the worker has not been heard of for so long that it does not count as alive."""
    return read_at(worker) - worker.seen_at >= operate.silence()


def _asking(request: WorkerRequest) -> Act:
    def ask(worker_id: str, database: str, options: Options) -> str:
        try:
            operate.ask_worker(worker_id, request.value, by=options["by"], database=database)
        except WorkQueueError as error:
            return str(error)
        return ""

    return ask


def _forget(worker_id: str, database: str, options: Options) -> str:
    try:
        operate.forget_worker(worker_id, by=options["by"], database=database)
    except WorkQueueError as error:
        return str(error)
    return ""


WORKERS: dict[str, Any] = {
    "permission": "manage",
    "selected": ngettext_lazy("%(count)s worker is selected:", "%(count)s workers are selected:", "count"),
    "done": ngettext_lazy(
        "%(count)d worker was asked, and hears of it at its next heartbeat.",
        "%(count)d workers were asked, and hear of it at their next heartbeats.",
        "count",
    ),
    "left": ngettext_lazy("%(count)d worker was left as it is.", "%(count)d workers were left as they are.", "count"),
    "more": gettext_lazy("One request handles at most %(limit)d workers. Repeat it for those that are left."),
    "log_flag": CHANGE,
}
QUIET = Operation(
    **WORKERS,
    name="quiet",
    label=gettext_lazy("Quiet…"),
    title=gettext_lazy("Quiet workers"),
    explanation=gettext_lazy(
        "A quiet worker finishes the jobs that it has and claims nothing more, until it is resumed. It still takes "
        "back the work of those that are gone, and fires schedules."
    ),
    button=gettext_lazy("Yes, be quiet"),
    act=_asking(WorkerRequest.QUIET),
    log_text=gettext_lazy("Asked to be quiet."),
    applies_to=lambda worker: worker.request == WorkerRequest.WORK and not is_silent(worker),
)
RESUME = Operation(
    **WORKERS,
    name="resume",
    label=gettext_lazy("Resume…"),
    title=gettext_lazy("Resume workers"),
    explanation=gettext_lazy("A worker that was quiet claims again."),
    button=gettext_lazy("Yes, resume"),
    act=_asking(WorkerRequest.WORK),
    log_text=gettext_lazy("Asked to work."),
    applies_to=lambda worker: worker.request == WorkerRequest.QUIET and not is_silent(worker),
)
STOP = Operation(
    **WORKERS,
    name="stop",
    label=gettext_lazy("Stop…"),
    title=gettext_lazy("Stop workers"),
    explanation=gettext_lazy(
        "A worker that is asked to stop does as at SIGTERM: it claims nothing more, lets its jobs end within its "
        "shutdown timeout, gives back the others, and exits with 0. This cannot be taken back. A supervisor starts no "
        "other in its place; a service manager or a cluster that keeps it running does."
    ),
    button=gettext_lazy("Yes, stop"),
    is_final=True,
    act=_asking(WorkerRequest.STOP),
    log_text=gettext_lazy("Asked to stop."),
    form=ReasonForm,
    applies_to=lambda worker: worker.request != WorkerRequest.STOP and not is_silent(worker),
)
FORGET = Operation(
    **WORKERS
    | {
        "done": ngettext_lazy("%(count)d worker was forgotten.", "%(count)d workers were forgotten.", "count"),
        "log_flag": DELETION,
    },
    name="forget",
    label=gettext_lazy("Forget…"),
    title=gettext_lazy("Forget workers"),
    explanation=gettext_lazy(
        "The row of a silent worker goes, and its leases lapse at once: any worker that lives takes its jobs back, "
        "with their attempts counted. Should it still run somewhere, what it does for them is refused. A worker that "
        "is alive is left as it is."
    ),
    button=gettext_lazy("Yes, forget"),
    is_final=True,
    act=_forget,
    log_text=gettext_lazy("Forgotten."),
    form=ReasonForm,
    applies_to=is_silent,
)
