"""Masked values on the pages of jobs: hidden, and shown on one answer to whoever may see them and asks by POST."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from ..domain.masking import Veil
from .base import ReadOnlyMixin
from .words import Column, preformatted, pretty

MOST_NAMES = 2000
"""Characters of them in the log of changes."""
PERMISSION = "django_workqueue.reveal_job"


def veil_of(row: Any) -> Veil:
    """Return what may be shown of ``row``, worked out once for all its columns."""
    found: Veil | None = row.__dict__.get("_veil")
    if found is None:
        found = row.__dict__["_veil"] = Veil.of(row)
    return found


def reveals(request: HttpRequest) -> bool:
    """Whether the answer to ``request`` is one that shows masked values."""
    return getattr(request, "workqueue_reveals", False)


def json_of(column: str, description: Any) -> Column:
    """Return a method that shows the JSON text in ``column`` over several lines, or raw if it is none."""

    @admin.display(description=description)
    def show(_admin: Any, row: Any) -> str:
        return preformatted(pretty(veil_of(row).columns[column]))

    return show


class RevealingMixin(ReadOnlyMixin):
    """A screen of jobs whose page can show what is masked."""

    def get_urls(self) -> list[URLPattern]:
        """Add the address that shows it."""
        view = self.admin_site.admin_view(self.reveal_view)
        return [path("<path:object_id>/reveal/", view, name=self._reveal_name()), *super().get_urls()]

    def reveal_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Log who sees which values, then show the page with them, this once."""
        if not (self.has_view_permission(request) and request.user.has_perm(PERMISSION)):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        found = self.get_object(request, unquote(object_id))
        if found is not None and (names := veil_of(found).names):
            self.log_change(request, found, _("Revealed: %(names)s.") % {"names": ", ".join(names)[:MOST_NAMES]})
        # Django's page of a row takes a POST for a change, which nobody may make here.
        request.method = "GET"
        request.workqueue_reveals = True  # type: ignore[attr-defined]
        response = self.change_view(request, object_id)
        response["Cache-Control"] = "no-store"
        return response

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row, with its veil lifted where this request reveals."""
        found = super().get_object(request, object_id, from_field)
        if found is not None and reveals(request):
            found.__dict__["_veil"] = Veil.lifted(found)
        return found

    def reveal_address(self, request: HttpRequest, row: Any) -> str:
        """Return where the masked values of ``row`` are shown; empty where there are none, or not to this user."""
        if not veil_of(row).names or not request.user.has_perm(PERMISSION):
            return ""
        return reverse(f"admin:{self._reveal_name()}", args=(quote(row.pk),), current_app=self.admin_site.name)

    def _reveal_name(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_reveal"
