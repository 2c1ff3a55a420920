"""The screen of dead letters: why each stopped, and what a person decides about it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from ..models import DeadLetter
from .changelist import capped_count
from .filters import QueueFilter, ReasonFilter
from .job_columns import WHAT, WHERE, JobColumnsMixin
from .keyset import Keyset
from .operations import DISCARD, LIMIT, REQUEUE, Operation, perform
from .words import when

SAMPLE = 10
"""Dead letters named on the page that asks for confirmation."""


class DeadLetterAdminMixin(JobColumnsMixin):
    """
    Dead letters, newest first.

    Requeue and discard have a permission each, ask before they act, and act on POST alone: on a selection as
    actions of the list, and on one dead letter from its page.
    """

    keyset = Keyset(("-died_at", "-id"))
    actions = ("requeue", "discard")
    list_display = ("task", "reason", "error_line", "died", "queue", "tenant")
    list_filter = (QueueFilter, ReasonFilter)
    empty_text = _("No job has stopped for good. One that does waits here until a person decides.")
    fieldsets = (
        (None, {"fields": ("reason", "died", "enqueued", "tries", "shown_last_error")}),
        WHAT,
        WHERE,
        (_("Seen by"), {"fields": (("acknowledged", "acknowledged_by"), "note")}),
    )

    died = when("died_at", _("died"))
    acknowledged = when("acknowledged_at", _("acknowledged"))

    @admin.action(permissions=["requeue"], description=_("Requeue selected %(verbose_name_plural)s…"))
    def requeue(self, request: HttpRequest, queryset: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Ask, then put the selected dead letters back."""
        return self._run_action(request, queryset, REQUEUE)

    @admin.action(permissions=["discard"], description=_("Discard selected %(verbose_name_plural)s…"))
    def discard(self, request: HttpRequest, queryset: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Ask, then delete the selected dead letters."""
        return self._run_action(request, queryset, DISCARD)

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """Whether the user may requeue."""
        return self._may(request, REQUEUE)

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Whether the user may discard."""
        return self._may(request, DISCARD)

    def get_urls(self) -> list[URLPattern]:
        """Add the page of each operation to those of every dead letter."""
        return [self._url_of(REQUEUE), self._url_of(DISCARD), *super().get_urls()]

    def page_context(self, request: HttpRequest, obj: DeadLetter) -> dict[str, Any]:
        """Return the history of the dead letter, and the addresses of what the user may do to it."""
        addresses = {
            each.name: self._address(each.name, quote(obj.pk))
            for each in (REQUEUE, DISCARD)
            if self._may(request, each)
        }
        return super().page_context(request, obj) | {"operations": addresses}

    def _run_action(
        self, request: HttpRequest, rows: QuerySet[DeadLetter], operation: Operation
    ) -> HttpResponse | None:
        if "confirmed" in request.POST:
            self._perform(request, rows, operation)
            return None
        return self._ask(request, rows, operation)

    def _page_of(self, request: HttpRequest, object_id: str, operation: Operation) -> HttpResponse:
        """Ask about one dead letter on GET, do it on POST."""
        if not (self.has_view_permission(request) and self._may(request, operation)):
            raise PermissionDenied
        letter = self.get_object(request, unquote(object_id))
        if letter is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        rows = self.get_queryset(request).filter(pk=letter.pk)
        if request.method != "POST":
            return self._ask(request, rows, operation)
        self._perform(request, rows, operation)
        return HttpResponseRedirect(self._list_address(request))

    def _ask(self, request: HttpRequest, rows: QuerySet[DeadLetter], operation: Operation) -> HttpResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": operation.title,
            "opts": self.opts,
            "operation": operation,
            "count": capped_count(rows),
            "limit": LIMIT,
            "sample": rows[:SAMPLE],
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across") == "1",
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "back": self._list_address(request),
        }
        return TemplateResponse(request, "admin/django_workqueue/confirm.html", context)

    def _perform(self, request: HttpRequest, rows: QuerySet[DeadLetter], operation: Operation) -> None:
        tally = perform(operation, rows, self.keyset, user_id=request.user.pk, database=self.database)
        for level, text in tally.tell(operation):
            self.message_user(request, text, level)

    def _may(self, request: HttpRequest, operation: Operation) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.{operation.name}_{self.opts.model_name}")

    def _url_of(self, operation: Operation) -> URLPattern:
        def view(request: HttpRequest, object_id: str) -> HttpResponse:
            return self._page_of(request, object_id, operation)

        name = f"{self.opts.app_label}_{self.opts.model_name}_{operation.name}"
        return path(f"<path:object_id>/{operation.name}/", self.admin_site.admin_view(view), name=name)

    def _address(self, page: str, *args: Any) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)

    def _list_address(self, request: HttpRequest) -> str:
        """Return the address of the list as it was filtered."""
        context: dict[str, Any] = {
            "preserved_filters": self.get_preserved_filters(request),
            "opts": self.opts,
        }
        return add_preserved_filters(context, self._address("changelist"))
