"""Looking does not disturb the workers: a page is read in a transaction that locks nothing and does not last long."""

from __future__ import annotations

from collections.abc import Callable
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

    def looked_at(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        """Return what ``view`` does on GET; a page that says so where a statement takes longer than PATIENCE."""
        if request.method not in {"GET", "HEAD"}:
            return view()
        store = store_for(get_settings().database)
        # The project's function may write; and where it fails, the transaction of the page would fail with it.
        scope_of(request)
        try:
            with store.looking(PATIENCE):
                return view()
        except OperationalError as error:
            if not store.is_too_slow(error):
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
