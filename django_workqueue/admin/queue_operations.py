"""What a person may do to a queue, as operations of its screen; to all of its jobs by a job, with a preview before."""

from __future__ import annotations

from copy import copy
from typing import Any

from django.contrib.admin.models import CHANGE
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from ..domain.states import JobState
from ..lifecycle import operate
from ..models import Job, Queue
from ..store import store_for
from .bulk import decide
from .matching import MatchingMixin, preview_of
from .operating import OperatingMixin, form_of, options_of
from .operations import CANCEL, Operation, Options
from .options import MoveAllForm, NamedForm
from .rescheduling import MOVE


def _pause(name: str, database: str, options: Options) -> str:
    is_new = operate.pause(name, by=options["by"], database=database)
    return "" if is_new else _("Queue %(name)s was paused already.") % {"name": name}


def _resume(name: str, database: str, _options: Options) -> str:
    was_paused = operate.resume(name, database=database)
    return "" if was_paused else _("Queue %(name)s was not paused.") % {"name": name}


def _by_a_job(_name: str, _database: str, _options: Options) -> str:
    raise TypeError("The jobs of a queue are too many for one request.")


QUEUES: dict[str, Any] = {
    "selected": ngettext_lazy("%(count)s queue is selected:", "%(count)s queues are selected:", "count"),
    "left": ngettext_lazy("%(count)d queue was left as it is.", "%(count)d queues were left as they are.", "count"),
    "more": gettext_lazy("One request handles at most %(limit)d queues. Repeat it for those that are left."),
    "log_flag": CHANGE,
}
JOBS: dict[str, Any] = QUEUES | {
    "selected": ngettext_lazy("%(count)s job at this moment:", "%(count)s jobs at this moment:", "count"),
    "done": "",
    "act": _by_a_job,
    "initial": lambda queue: {"expected": queue.name},
}
PAUSE = Operation(
    **QUEUES,
    name="pause",
    permission="pause",
    label=gettext_lazy("Pause…"),
    title=gettext_lazy("Pause queues"),
    explanation=gettext_lazy("Within two seconds no worker begins a job of a paused queue. What runs goes on."),
    button=gettext_lazy("Yes, pause"),
    done=ngettext_lazy("%(count)d queue was paused.", "%(count)d queues were paused.", "count"),
    act=_pause,
    log_text=gettext_lazy("Paused."),
    applies_to=lambda queue: queue.paused_at is None,
)
RESUME = Operation(
    **QUEUES,
    name="resume",
    permission="pause",
    label=gettext_lazy("Resume…"),
    title=gettext_lazy("Resume queues"),
    explanation=gettext_lazy("Workers begin its jobs again."),
    button=gettext_lazy("Yes, resume"),
    done=ngettext_lazy("%(count)d queue was resumed.", "%(count)d queues were resumed.", "count"),
    act=_resume,
    log_text=gettext_lazy("Resumed."),
    applies_to=lambda queue: queue.paused_at is not None,
)
MOVE_JOBS = Operation(
    **JOBS,
    name="move_jobs",
    permission="move",
    label=gettext_lazy("Move its jobs…"),
    title=gettext_lazy("Move the jobs of a queue"),
    explanation=gettext_lazy(
        "All jobs that wait in the queue go to another one, and keep their time, priority, keys and attempts. Those "
        "that a worker holds are left as they are, and so are those whose dedupe key is taken there. What is enqueued "
        "from now on comes here as ever."
    ),
    button=gettext_lazy("Yes, move them"),
    log_text=gettext_lazy("Its jobs are being moved."),
    form=MoveAllForm,
)
PURGE = Operation(
    **JOBS,
    name="purge",
    permission="purge",
    label=gettext_lazy("Purge…"),
    title=gettext_lazy("Cancel all ready jobs of a queue"),
    explanation=gettext_lazy(
        "All jobs that are ready in the queue are cancelled and never run. This cannot be undone. Those that run, and "
        "those that are scheduled, blocked or parked, stay as they are."
    ),
    button=gettext_lazy("Yes, cancel them"),
    log_text=gettext_lazy("Its ready jobs are being cancelled."),
    form=NamedForm,
)
AS_A_JOB: dict[str, tuple[Operation, dict[str, str]]] = {
    MOVE_JOBS.name: (MOVE, {}),
    PURGE.name: (CANCEL, {"state": JobState.READY.value}),
}
"""What is done to the jobs of a queue: an operation of their screen, and which of them it is done to."""


class QueueOperatingMixin(OperatingMixin):
    """A screen of queues whose operations may reach their jobs: those that the user may see and do this to."""

    operations = (PAUSE, RESUME, MOVE_JOBS, PURGE)

    def _page_of(self, request: HttpRequest, object_id: str, operation: Operation) -> HttpResponse:
        """Ask about one queue on GET, do it on POST: to its jobs by a job."""
        if operation.name not in AS_A_JOB:
            return super()._page_of(request, object_id, operation)
        if not self.permits(request, operation):
            raise PermissionDenied
        queue = self.get_object(request, unquote(object_id))
        if queue is None:
            return self._gone(request, object_id)
        form = form_of(operation, request.POST if request.method == "POST" else None, row=queue)
        if request.method == "POST" and form is not None and form.is_valid():
            return HttpResponseRedirect(self._hand_over(request, queue, operation, options_of(request, form)))
        asked = _asking_for(request, queue, operation)
        found: Any = self._jobs().get_changelist_instance(asked)
        told = {"title": f"{operation.title}: {queue}", "as_job": True, "job_queue": decide.queue_name}
        more = preview_of(found) | told
        return self._ask(request, found.everything, operation, form, **more)

    def _hand_over(self, request: HttpRequest, queue: Queue, operation: Operation, options: dict[str, Any]) -> str:
        """Let a job do it, log it with the queue, and return where to look on."""
        done, _query = AS_A_JOB[operation.name]
        given = {name: value for name, value in options.items() if name != "name"}
        with store_for(self.database).transaction():
            address: str = self._jobs().hand_over(_asking_for(request, queue, operation), done, given)
            self.log_change(request, queue, operation.logged(options))
        return address or self._list_address(request)

    def _may(self, request: HttpRequest, operation: Operation) -> bool:
        """Whether the user may do it to queues, and to jobs where those are what it is done to."""
        is_permitted = super()._may(request, operation)
        if operation.name not in AS_A_JOB or not is_permitted:
            return is_permitted
        is_there = self.admin_site.is_registered(Job) and isinstance(self._jobs(), MatchingMixin)
        return is_there and self._jobs().permits(request, AS_A_JOB[operation.name][0])

    def _jobs(self) -> Any:
        return self.admin_site.get_model_admin(Job)


def _asking_for(request: HttpRequest, queue: Queue, operation: Operation) -> HttpRequest:
    """Return the request for the list of the jobs that are meant."""
    asked = copy(request)
    asked.method = "GET"
    query = urlencode({"queue": queue.name, **AS_A_JOB[operation.name][1]})
    asked.GET = QueryDict(query)
    return asked
