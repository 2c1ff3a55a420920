"""Jobs as files: one as JSON, a selection or all that the filters leave as lines of JSON. For whoever may look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ..domain.masking import Veil
from ..lifecycle.exporting import as_dict, export
from ..models import Failure
from .changelist import AFTER
from .failures import SHOWN
from .revealing import RevealingMixin, veil_of


class ExportingMixin(RevealingMixin):
    """A screen of jobs that can be taken along. What is masked stays masked."""

    def get_urls(self) -> list[URLPattern]:
        """Add the file of all that match, and that of one."""
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        wrap = self.admin_site.admin_view
        return [
            path("export/", wrap(self.export_view), name=f"{name}_export"),
            path("<path:object_id>/json/", wrap(self.json_view), name=f"{name}_json"),
            *super().get_urls(),
        ]

    @admin.action(permissions=["view"], description=_("Export selected %(verbose_name_plural)s as JSON lines"))
    def export(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase:
        """Send the selected rows as a file."""
        return self._file(export(queryset, self.keyset))

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Send what the list shows on all its pages: the window of newest rows, where the filters need one."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        query = request.GET.copy()
        query.pop(AFTER, None)
        request.GET = query  # type: ignore[assignment] # as Django's own admin does
        return self.looked_at(request, lambda: self._all(request))

    def json_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Send one job with its failures as JSON."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self.looked_at(request, lambda: self._one(request, object_id))

    def _all(self, request: HttpRequest) -> Any:
        try:
            found: Any = self.get_changelist_instance(request)
        except IncorrectLookupParameters:
            return HttpResponseRedirect(self.address_of("changelist") + "?e=1")
        return self._file(export(found.queryset, self.keyset))

    def _one(self, request: HttpRequest, object_id: str) -> HttpResponse:
        found = self.get_object(request, unquote(object_id))
        if found is None:
            return HttpResponseRedirect(self.address_of("change", object_id))
        failures = Failure.objects.using(self.database).filter(job_id=found.pk).order_by("-id")[:SHOWN]
        veil = veil_of(found)
        told = as_dict(found, veil) | {"failures": [_failure(each, veil) for each in reversed(failures)]}
        response = JsonResponse(told, json_dumps_params={"indent": 2})
        response["Content-Disposition"] = f'attachment; filename="{found.pk}.json"'
        return response

    def _file(self, lines: Iterable[str]) -> StreamingHttpResponse:
        name = f"{self.opts.model_name}-{timezone.now():%Y%m%d-%H%M%S}.jsonl"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
        return StreamingHttpResponse(lines, content_type="application/x-ndjson", headers=headers)


def _failure(failure: Failure, veil: Veil) -> dict[str, Any]:
    names = ("attempt", "kind", "error_class", "worker", "started_at", "failed_at", "next_try_at")
    texts = {name: veil.text(getattr(failure, name)) for name in ("message", "traceback")}
    return {name: getattr(failure, name) for name in names} | texts
