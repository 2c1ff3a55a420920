"""An operation on all rows that match the filters: a preview first, and a job of the queue where they are many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from ..models import Job
from .bulk import decide, start
from .changelist import AFTER, FROM, BoundedChangeList, CappedCount
from .operating import SAMPLE, OperatingMixin, form_of, options_of
from .operations import Operation, Tally
from .options import OptionsForm
from .scope import scope_of


class MatchingMixin(OperatingMixin):
    """A screen whose operations reach everything that matches its list's address."""

    def get_urls(self) -> list[URLPattern]:
        """Add the page of each operation on all that match."""
        return [*map(self._matching_url, self._operations_on_many()), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, with the addresses of what the user may do to all of it."""
        links = list(self.matching_links(request, request.GET.urlencode()))
        export = f"{self.address_of('export')}?{request.GET.urlencode()}"
        return super().changelist_view(request, {**(extra_context or {}), "matching": links, "export": export})

    def matching_links(self, request: HttpRequest, query: str) -> Iterator[tuple[Operation, str]]:
        """Yield what the user may do to all that match ``query``, each with its address."""
        for each in self._operations_on_many():
            if self._may(request, each):
                yield each, f"{self.address_of(f'all_{each.name}')}?{query}"

    def _operations_on_many(self) -> list[Operation]:
        return [each for each in self.operations if each.every]

    def _matching_url(self, operation: Operation) -> URLPattern:
        def view(request: HttpRequest) -> HttpResponse:
            return self.looked_at(request, lambda: self._matching_page(request, operation))

        name = f"{self.opts.app_label}_{self.opts.model_name}_all_{operation.name}"
        return path(f"all/{operation.name}/", self.admin_site.admin_view(view), name=name)

    def _matching_page(self, request: HttpRequest, operation: Operation) -> HttpResponse:
        """Say on GET what would be done to how many, do it on POST."""
        if not self.permits(request, operation):
            raise PermissionDenied
        back = f"{self.address_of('changelist')}?{request.GET.urlencode()}"
        _forget_positions(request)
        try:
            found: Any = self.get_changelist_instance(request)
        except IncorrectLookupParameters:
            return HttpResponseRedirect(self.address_of("changelist") + "?e=1")
        form = form_of(operation, request.POST if request.method == "POST" else None)
        if request.method != "POST" or (form is not None and not form.is_valid()):
            more = preview_of(found) | {"back": back, "as_job": self._is_large(found)}
            return self._ask(request, found.everything, operation, form, **more)
        if not self._is_large(found):
            super()._perform(request, found.everything, operation, options_of(request, form))
            return HttpResponseRedirect(back)
        return HttpResponseRedirect(self.hand_over(request, operation, options_of(request, form)) or back)

    def _perform(
        self, request: HttpRequest, rows: QuerySet[Any], operation: Operation, options: dict[str, Any]
    ) -> Tally:
        """Do it here to what was selected on a page; leave to a job what "all" selects beyond."""
        if self._is_all_of_many(request, rows):
            _forget_positions(request)
            self.hand_over(request, operation, options)
            return Tally()
        return super()._perform(request, rows, operation, options)

    def _ask(
        self, request: HttpRequest, rows: QuerySet[Any], operation: Operation, form: OptionsForm | None, **more: Any
    ) -> HttpResponse:
        more.setdefault("as_job", self._is_all_of_many(request, rows))
        return super()._ask(request, rows, operation, form, job_queue=decide.queue_name, **more)

    def _is_all_of_many(self, request: HttpRequest, rows: QuerySet[Any]) -> bool:
        """Whether "all" was chosen in the list, and that is more than its page shows."""
        most = self.list_per_page
        return request.POST.get("select_across") == "1" and len(rows.values_list("pk")[: most + 1]) > most

    def hand_over(self, request: HttpRequest, operation: Operation, options: dict[str, Any]) -> str:
        """Hand all that match to a job, and return the address of the job's page where the user may see it."""
        job = start(self, request, operation, options)
        site = self.admin_site
        may_see = site.is_registered(Job) and site.get_model_admin(Job).has_view_permission(request)
        told, address = _("Job %(id)s of the queue %(queue)s does it."), ""
        if may_see and job.tenant in scope_of(request):
            told = _("Job %(id)s of the queue %(queue)s does it; its page shows how far it is.")
            address = reverse("admin:django_workqueue_job_change", args=(job.pk,), current_app=site.name)
        self.message_user(request, told % {"id": job.pk, "queue": job.queue}, messages.SUCCESS)
        return address

    def _is_large(self, found: BoundedChangeList) -> bool:
        return bool(found.further) or found.result_count > self.list_per_page


def _forget_positions(request: HttpRequest) -> None:
    """All that match are on all pages, whichever was open."""
    query = request.GET.copy()
    for name in (AFTER, FROM):
        query.pop(name, None)
    request.GET = query  # type: ignore[assignment] # as Django's own admin does


def preview_of(found: BoundedChangeList) -> dict[str, Any]:
    """Return what a page says of the rows that match: how many at least, and the first of them."""
    count = CappedCount(found.result_count) if found.further else found.result_count
    return {"count": count, "sample": found.result_list[:SAMPLE]}
