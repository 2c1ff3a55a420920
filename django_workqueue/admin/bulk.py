"""
An operation on everything that matches, as a job: paced, with progress, and no refusal ends it.

The job stores the address of the list, the person and the options. It finds the rows as the list would show them to
that person, and asks again whether the person may.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.admin.sites import all_sites
from django.contrib.auth import get_user_model
from django.core.signing import BadSignature, Signer
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from ..domain.context import JobContext
from ..domain.ids import new_id
from ..domain.scope import Scope
from ..exceptions import Reject
from ..lifecycle import scope as lifecycle
from ..lifecycle.enqueue import JobRequest, enqueue
from ..models import Job
from ..store import store_for
from ..tasks import task
from .operating import OperatingMixin
from .operations import BATCH, Operation, Options, perform_one
from .scope import limit, scope_of

PRIORITY = 100
"""A person waits for it."""
PAUSE = 0.1
"""Seconds between two batches: the workers' own statements come first."""
MOST_NAMED = 100
"""Refusals that the result tells one by one."""
MOST_TOTAL = 100_000
"""Rows that are counted before it begins; with more of them progress has no total."""


def home(tasks: Mapping[str, Any]) -> dict[str, Any]:
    """Return backend and queue for the task, as TASKS permits: with others than these no admin could be imported."""
    alias = "default" if "default" in tasks or not tasks else next(iter(tasks))
    queues = tasks.get(alias, {}).get("QUEUES", ["default"])
    return {"backend": alias, "queue_name": "default" if not queues or "default" in queues else min(queues)}


def start(screen: OperatingMixin, request: HttpRequest, operation: Operation, options: Options) -> Job:
    """Enqueue the job, and log who asked for what and why."""
    store = store_for(screen.database)
    user_id: Any = request.user.pk
    asked = {
        "model": screen.opts.model_name,
        "operation": operation.name,
        "query": request.GET.urlencode(),
        "user": str(user_id),
        "site": screen.admin_site.name,
        "options": dict(options),
        # What comes while it runs is another decision.
        "until": store.now().isoformat(),
    }
    job_id = new_id()
    # Who may see one tenant can watch the job as that one's; of several, each is to know nothing of the others.
    given: dict[str, Any] = {"tenant": scope_of(request).only or "", "job_id": job_id, "priority": PRIORITY}
    asked["seal"] = _signer().signature(_sealed(job_id, asked))
    with store.transaction():
        wanted = JobRequest(task=decide.module_path, kwargs=asked, queue=decide.queue_name, **given)
        job = enqueue([wanted], database=screen.database)[0].job
        words = {"title": operation.title, "query": asked["query"] or "*", "how": operation.logged(options)}
        told = _("%(title)s: all that match %(query)s. %(how)s") % words
        LogEntry.objects.log_actions(user_id, [job], ADDITION, told)
    return job


def _signer() -> Signer:
    return Signer(salt=__name__)


def _sealed(job_id: UUID, asked: Mapping[str, Any]) -> str:
    return json.dumps({"job": str(job_id), **asked}, sort_keys=True)


@task(takes_context=True, retention=timedelta(days=7), **home(getattr(settings, "TASKS", {})))
def decide(
    context: JobContext,
    *,
    model: str,
    operation: str,
    query: str,
    user: str,
    site: str,
    options: dict[str, Any],
    until: str,
    seal: str,
) -> dict[str, Any]:
    """Do one operation to all rows of a screen that match, and return what became of them."""
    asked = {"model": model, "operation": operation, "query": query, "user": user, "site": site}
    _check_seal(_sealed(context.job_id, asked | {"options": options, "until": until}), seal)
    screen, request = _as_seen_by(user, site, model, query)
    limit(request, lifecycle.scope_of(request.user) & Scope.of(options["tenants"]))
    chosen = next((each for each in screen.operations if each.name == operation), None)
    if chosen is None or not screen.permits(request, chosen):
        raise Reject(f"{request.user} may not {operation} {screen.opts.verbose_name_plural}.")
    found: Any = screen.get_changelist_instance(request)
    rows = found.everything.filter((f"{screen.came_at}__lte", datetime.fromisoformat(until)))
    # Of all that wait or run, this job is not meant itself.
    rows = rows.exclude(pk=context.job_id)
    return _Walk(context, screen, chosen, request.user.pk, options).through(rows)


def _check_seal(text: str, seal: str) -> None:
    """Refuse what the admin did not ask for: arguments can be changed by people who may not do what they say."""
    try:
        _signer().unsign(f"{text}:{seal}")
    except BadSignature:
        raise Reject(
            "The admin has not signed these arguments, or had another SECRET_KEY. Make the decision there once more."
        ) from None


@dataclass(slots=True)
class _Walk:
    context: JobContext
    screen: OperatingMixin
    operation: Operation
    user_id: Any
    options: Options
    done: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)

    def through(self, rows: QuerySet[Any]) -> dict[str, Any]:
        """Handle ``rows`` in portions; rows that an earlier attempt of the job has handled are not among them."""
        count = rows.order_by()[: MOST_TOTAL + 1].count()
        total = count if count <= MOST_TOTAL else None
        for batch in self.screen.keyset.batches(rows, BATCH):
            self.context.heartbeat()
            for row in batch:
                self._handle(row)
            handled = self.done + self.refused
            self.context.progress(handled, None if total is None else max(total, handled), str(self.operation.title))
            time.sleep(PAUSE)
        return {"done": self.done, "left_as_they_are": self.refused, "problems": self.problems}

    def _handle(self, row: Any) -> None:
        problem = perform_one(self.operation, row, self.user_id, self.screen.database, self.options)
        if not problem:
            self.done += 1
            return
        self.refused += 1
        if len(self.problems) < MOST_NAMED:
            self.problems.append(f"{row.pk}: {problem}")


def _as_seen_by(user: str, site: str, model_name: str, query: str) -> tuple[Any, HttpRequest]:
    """Return a screen, and a request for its list as that person would make it."""
    model = apps.get_model("django_workqueue", model_name)
    request = HttpRequest()
    request.method = "GET"
    request.GET = QueryDict(query)
    person = get_user_model()._default_manager.filter(pk=user).first()
    found = next((each for each in all_sites if each.name == site), None)
    if person is None or not person.is_staff or found is None or not found.is_registered(model):
        raise Reject(f"The admin {site!r} has no screen of {model._meta.verbose_name_plural} for the user {user}.")
    request.user = person
    return found.get_model_admin(model), request
