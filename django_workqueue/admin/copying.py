"""Enqueueing what is over once more, as an operation of the screens of finished jobs and dead letters."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.models import ADDITION
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy, ngettext_lazy

from ..lifecycle import operate
from .matching import MatchingMixin
from .operations import Operation, Options
from .options import CopyForm


def _copy(job_id: UUID, database: str, options: Options) -> str:
    refused = operate.copy([job_id], seed=UUID(options["seed"]), tenant=options["tenants"], database=database).refused
    return refused[0].problem if refused else ""


COPY = Operation(
    name="copy",
    permission="copy",
    label=gettext_lazy("Enqueue a copy…"),
    every=gettext_lazy("Copy all…"),
    title=gettext_lazy("Enqueue copies"),
    explanation=gettext_lazy(
        "A copy is a new job with the same task, arguments, queue, tenant and priority, ready at once. What it is a "
        "copy of stays as it is. Whatever the task did, it does again: a copy has no dedupe key, and is in no "
        "workflow. Sending this page twice makes no second copy."
    ),
    button=gettext_lazy("Yes, enqueue"),
    selected=ngettext_lazy("%(count)s job is selected:", "%(count)s jobs are selected:", "count"),
    done=ngettext_lazy("%(count)d copy was enqueued.", "%(count)d copies were enqueued.", "count"),
    left=ngettext_lazy("%(count)d job was not copied.", "%(count)d jobs were not copied.", "count"),
    more=gettext_lazy("One request copies at most %(limit)d jobs."),
    act=_copy,
    log_flag=ADDITION,
    log_text=gettext_lazy("Enqueued a copy."),
    form=CopyForm,
)


class CopyingMixin(MatchingMixin):
    """A screen of jobs that are over, which can be enqueued once more."""

    @admin.action(permissions=["copy"], description=gettext_lazy("Enqueue copies of selected %(verbose_name_plural)s…"))
    def copy(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Ask, then enqueue copies of the selected jobs."""
        return self._run_action(request, queryset, COPY)

    def has_copy_permission(self, request: HttpRequest) -> bool:
        """Whether the user may copy."""
        return self._may(request, COPY)
