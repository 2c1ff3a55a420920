"""What a person may do to rows, as actions of a list and from the page of one: asked before, and on POST alone."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from ..domain.ids import new_id
from .base import ReadOnlyMixin
from .changelist import capped_count
from .operations import LIMIT, Operation, Tally, perform
from .options import OptionsForm
from .scope import scope_of
from .words import name_of

SAMPLE = 10
"""Rows named on the page that asks for confirmation."""


class OperatingMixin(ReadOnlyMixin):
    """A screen with operations. Each has a page for one row, and a subclass makes it an action of the list."""

    operations: ClassVar[tuple[Operation, ...]] = ()

    def get_urls(self) -> list[URLPattern]:
        """Add the page of each operation to those of every row."""
        return [*map(self._url_of, self.operations), *super().get_urls()]

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Return what the page of a row shows beside its columns, and the addresses of what the user may do to it."""
        permitted = [each for each in self.operations if self._may(request, each) and each.applies_to(obj)]
        addresses = [(each.label, self.address_of(each.name, quote(obj.pk))) for each in permitted]
        return super().page_context(request, obj) | {"operations": addresses}

    def permits(self, request: HttpRequest, operation: Operation) -> bool:
        """Whether the user may see the rows, and do ``operation`` to them."""
        return self.has_view_permission(request) and self._may(request, operation)

    def _run_action(self, request: HttpRequest, rows: QuerySet[Any], operation: Operation) -> HttpResponse | None:
        if "confirmed" not in request.POST:
            return self._ask(request, rows, operation, form_of(operation))
        form = form_of(operation, request.POST)
        if form is not None and not form.is_valid():
            return self._ask(request, rows, operation, form)
        self._perform(request, rows, operation, options_of(request, form))
        return None

    def _page_of(self, request: HttpRequest, object_id: str, operation: Operation) -> HttpResponse:
        """Ask about one row on GET, do it on POST."""
        if not self.permits(request, operation):
            raise PermissionDenied
        found = self.get_object(request, unquote(object_id))
        if found is None:
            return self._gone(request, object_id)
        rows = self.get_queryset(request).filter(pk=found.pk)
        if request.method != "POST":
            return self._ask(request, rows, operation, form_of(operation, row=found))
        form = form_of(operation, request.POST, row=found)
        if form is not None and not form.is_valid():
            return self._ask(request, rows, operation, form)
        tally = self._perform(request, rows, operation, options_of(request, form))
        if operation.single and form is not None and tally.problems:
            # What a person has typed is not thrown away with the refusal.
            return self._ask(request, rows, operation, form)
        return HttpResponseRedirect(self._list_address(request))

    def _gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Do as Django does for the page of a row that is not there; screens may know where it has gone."""
        answer: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
        return answer

    def _ask(
        self,
        request: HttpRequest,
        rows: QuerySet[Any],
        operation: Operation,
        form: OptionsForm | None,
        **more: Any,
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        with self.reading(request):
            count = more["count"] if "count" in more else capped_count(rows)
            is_all = request.POST.get("select_across") == "1"
            sample = more["sample"] if "sample" in more else list((rows if is_all else rows.order_by())[:SAMPLE])
        context = {
            **self.admin_site.each_context(request),
            "title": operation.title,
            "opts": self.opts,
            "operation": operation,
            "form": form,
            "count": count,
            "selected_text": operation.selected % {"count": count},
            "limit": LIMIT,
            "sample": sample,
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": is_all,
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "back": self._list_address(request),
            "media": self.media,
            **more,
        }
        return TemplateResponse(request, "admin/django_workqueue/confirm.html", context)

    def _perform(
        self, request: HttpRequest, rows: QuerySet[Any], operation: Operation, options: dict[str, Any]
    ) -> Tally:
        given: dict[str, Any] = {"user_id": request.user.pk, "database": self.database, "options": options}
        tally = perform(operation, rows, self.keyset, **given)
        for level, text in tally.tell(operation):
            self.message_user(request, text, level)
        return tally

    def _may(self, request: HttpRequest, operation: Operation) -> bool:
        is_given = request.user.has_perm(f"{self.opts.app_label}.{operation.permission}_{self.opts.model_name}")
        return is_given and not (self.is_shared and scope_of(request).is_limited)

    def _url_of(self, operation: Operation) -> URLPattern:
        def view(request: HttpRequest, object_id: str) -> HttpResponse:
            return self.looked_at(request, lambda: self._page_of(request, object_id, operation))

        name = f"{self.opts.app_label}_{self.opts.model_name}_{operation.name}"
        return path(f"<path:object_id>/{operation.name}/", self.admin_site.admin_view(view), name=name)

    def _list_address(self, request: HttpRequest) -> str:
        """Return the address of the list as it was filtered."""
        context: dict[str, Any] = {
            "preserved_filters": self.get_preserved_filters(request),
            "opts": self.opts,
        }
        return add_preserved_filters(context, self.address_of("changelist"))


def form_of(operation: Operation, data: Any = None, *, row: Any = None) -> OptionsForm | None:
    """Return the form of an operation, filled in by ``data`` or as ``row`` is."""
    if operation.form is None:
        return None
    return operation.form(data, initial={} if row is None else operation.initial(row))


def options_of(request: HttpRequest, form: OptionsForm | None) -> dict[str, Any]:
    """Return what was asked for, by whom, whose rows that person may touch, and an id for what comes of it."""
    tenants = scope_of(request).tenants
    ours = {"by": name_of(request.user), "tenants": None if tenants is None else sorted(tenants)}
    ours["replay"] = str(new_id())
    return {**(form.cleaned_data if form else {}), **ours}
