"""Looking does not disturb the workers: a page is read in a transaction that locks nothing and does not last long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from ..conf import get_settings
from ..lifecycle.figures import PATIENCE
from ..store import store_for
from .scope import scope_of

if TYPE_CHECKING:
    Mixin = admin.ModelAdmin[Any]
else:
    Mixin = object


class LookingMixin(Mixin):
    """Reads the list and the page of a row so. What changes something is asked for by POST, and reads as it must."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, or say that it would take too long."""
        return self.looked_at(request, lambda: super(LookingMixin, self).changelist_view(request, extra_context))

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show a row, or say that it would take too long."""
        return self.looked_at(request, lambda: super(LookingMixin, self).changeform_view(request, *args, **kwargs))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Read the list, by which an action of it is asked for too."""
        with self.reading(request):
            return super().get_changelist_instance(request)

    @contextmanager
    def reading(self, request: HttpRequest) -> Iterator[None]:
        """Read a part of the answer to POST so; of the answer to GET, all is read so already."""
        if request.method == "POST":
            with store_for(get_settings().database).looking(PATIENCE):
                yield
        else:
            yield

    def looked_at(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        """
        Return what ``view`` does; a page that says so where a statement takes longer than PATIENCE.

        What is asked for by POST may write, and is not read so as a whole.
        """
        store = store_for(get_settings().database)
        # The project's function may write; and where it fails, the transaction of the page would fail with it.
        scope_of(request)
        try:
            with store.looking(PATIENCE) if request.method in {"GET", "HEAD"} else nullcontext():
                return view()
        except OperationalError as error:
            if not store.is_too_slow(error) or "confirmed" in request.POST:
                raise
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": _("This takes too long"),
            "opts": self.opts,
            "media": self.media,
            "too_slow": True,
            "seconds": PATIENCE.seconds,
        }
        return TemplateResponse(request, "admin/django_workqueue/too_slow.html", context)
