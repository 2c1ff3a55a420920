"""What the screens of live, finished and dead jobs share: one search, one layout, every failed attempt."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets, quote, unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..domain.context import COPY_OF, SCHEDULE
from ..domain.encoding import decode
from ..domain.steps import idempotency_key
from ..lifecycle.keyset import Keyset
from ..models import DeadLetter, FinishedJob, Job
from ..models.base import JobColumns
from .base import Fieldset
from .changes import changes_of
from .exporting import ExportingMixin
from .failures import History, LastAttempt
from .list_columns import ListColumnsMixin
from .revealing import json_of, reveals, veil_of
from .scope import scope_of
from .search import JOB_WORDS, Reach, Search
from .shown import stacked
from .steps import steps_of
from .timeline import timeline
from .words import line, preformatted, when

PLACES: tuple[type[JobColumns], ...] = (Job, FinishedJob, DeadLetter)
"""The tables that a job may be in, one at a time."""

WHAT: Fieldset = (gettext_lazy("What"), {"fields": ("task", "shown_args", "shown_kwargs")})
WHERE: Fieldset = (
    gettext_lazy("Where"),
    {
        "fields": (
            "id", ("queue", "tenant", "priority"), "dedupe_key", "shown_key", "shown_source", "shown_workflow",
            "shown_trace", "shown_metadata",
        ),
    },
)  # fmt: skip


class JobColumnsMixin(ExportingMixin, ListColumnsMixin):
    """A screen over one of the tables that hold jobs."""

    # Ids ascend with time, so the primary key is the order of arrival.
    keyset = Keyset(("-id",))
    windowed = True
    came_at: ClassVar[str] = "enqueued_at"
    """The column that tells since when a row is in this table."""
    words = JOB_WORDS
    """What may stand before a colon in the search box."""
    search_fields = ("id", "dedupe_key")
    search_help_text = gettext_lazy(
        "Type an id, a dedupe key, or the beginning of a task's dotted path. "
        "Or name what you mean: tenant:acme task:shop. queue:mail key:order-17 error:ValueError"
    )

    enqueued = when("enqueued_at", gettext_lazy("enqueued"))
    shown_args = json_of("args", gettext_lazy("arguments"))
    shown_kwargs = json_of("kwargs", gettext_lazy("keyword arguments"))
    shown_metadata = json_of("metadata", gettext_lazy("metadata"))

    @admin.display(description=gettext_lazy("idempotency key"))
    def shown_key(self, row: JobColumns) -> str:
        """Show the key by which others may know the job: log records carry it."""
        return idempotency_key(row.tenant, row.pk)

    @admin.display(description=gettext_lazy("comes from"))
    def shown_source(self, row: JobColumns) -> str:
        """Show the schedule that enqueued the job, or the job that it is a copy of, as a link."""
        marks = _metadata(row)
        if isinstance(name := marks.get(SCHEDULE), str):
            label = _("schedule %(name)s") % {"name": name}
            return self._link("schedule_changelist", label, query=f"?{urlencode({'q': name})}")
        if isinstance(original := marks.get(COPY_OF), str):
            return self._link("finishedjob_change", _("copy of %(id)s") % {"id": original}, quote(original))
        return "-"

    @admin.display(description=gettext_lazy("correlation id, trace"))
    def shown_trace(self, row: JobColumns) -> str:
        """Show by what the request that enqueued the job is found in logs, and in traces."""
        found = _metadata(row)
        told = [text for name in ("correlation_id", "traceparent") if isinstance(text := found.get(name), str)]
        return stacked(*told) if told else "-"

    def _link(self, page: str, label: str, *args: str, query: str = "") -> str:
        url = reverse(f"admin:django_workqueue_{page}", args=args, current_app=self.admin_site.name)
        return format_html('<a href="{}{}">{}</a>', url, query, label)

    @admin.display(description=gettext_lazy("workflow"))
    def shown_workflow(self, row: JobColumns) -> str:
        """Show a link to the workflow that the job is a member of."""
        if row.workflow is None:
            return "-"
        url = reverse("admin:django_workqueue_workflow_change", args=(row.workflow,), current_app=self.admin_site.name)
        return format_html('<a href="{}">{}</a>', url, row.workflow)

    @admin.display(description=gettext_lazy("attempts"))
    def tries(self, row: JobColumns) -> str:
        """Show how many attempts were made, of how many."""
        return _("%(attempts)d of %(allowed)d") % {"attempts": row.attempts, "allowed": row.max_attempts}

    @admin.display(description=gettext_lazy("last error"))
    def error_line(self, row: JobColumns) -> str:
        """Show the beginning of the last error."""
        return line(veil_of(row).text(row.last_error))

    @admin.display(description=gettext_lazy("last error"))
    def shown_last_error(self, row: JobColumns) -> str:
        """Show the last error with its lines."""
        return preformatted(veil_of(row).text(row.last_error))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Return every name of the layout."""
        return flatten_fieldsets(self.get_fieldsets(request, obj))

    def search_reaches(self, text: str) -> set[Reach]:
        """Return what the conditions in ``text`` cost."""
        return Search.parse(text, self.words).reaches

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that the search box asks for; no row comes twice."""
        return Search.parse(search_term, self.words).apply(queryset), False

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Return what the page of a job shows beside its columns: its steps and failed attempts."""
        history = History.of(obj, self.database)
        return super().page_context(request, obj) | {
            "timeline": timeline(obj, history),
            "steps": steps_of(obj, self.database),
            "history": history,
            "last_attempt": LastAttempt.of(obj),
            "changes": changes_of(obj),
            "json_address": self.address_of("json", quote(obj.pk)),
            "reveal": self.reveal_address(request, obj),
            "is_revealed": reveals(request),
            "subtitle": obj.task,
        }

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Follow a job that has moved since the list was read, as jobs do within milliseconds."""
        for model in PLACES:
            if self._may_be_seen(request, model) and self._is_in(request, model, unquote(object_id)):
                name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
                self.message_user(request, _("This job has moved on; here it is now."), messages.INFO)
                return HttpResponseRedirect(reverse(name, args=(object_id,), current_app=self.admin_site.name))
        return super()._get_obj_does_not_exist_redirect(request, opts, object_id)  # type: ignore[misc, no-any-return]

    def _may_be_seen(self, request: HttpRequest, model: type[JobColumns]) -> bool:
        site = self.admin_site
        return site.is_registered(model) and site.get_model_admin(model).has_view_permission(request)

    def _is_in(self, request: HttpRequest, model: type[JobColumns], text: str) -> bool:
        try:
            pk = UUID(text)
        except ValueError:
            return False
        return scope_of(request).apply(model._default_manager.using(self.database).filter(pk=pk)).exists()


def _metadata(row: JobColumns) -> dict[str, Any]:
    """Return the metadata as they may be shown; nothing where they cannot be decoded."""
    try:
        found: dict[str, Any] = decode(veil_of(row).columns["metadata"], dict)
    except ValueError:
        return {}
    return found
