"""Whose rows a request may see: asked once for each request, and nobody's where the project's function fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from ..domain.scope import Scope
from ..exceptions import TenantScopeError
from ..lifecycle import scope as lifecycle

logger = logging.getLogger("django_workqueue.scope")

_KEPT = "_django_workqueue_scope"


def scope_of(request: HttpRequest) -> Scope:
    """Return whose rows the request may see. Where that cannot be told, it sees none, and a message says why."""
    kept: Scope | None = getattr(request, _KEPT, None)
    return kept or limit(request, _ask(request))


def limit(request: HttpRequest, scope: Scope) -> Scope:
    """Let the request see what is in ``scope`` and nothing else."""
    setattr(request, _KEPT, scope)
    return scope


def _ask(request: HttpRequest) -> Scope:
    try:
        return lifecycle.scope_of(request.user)
    except TenantScopeError:
        logger.exception("No rows are shown to %s.", request.user)
        told = _("No rows are shown: it cannot be told which tenants you may see. The log of the site says why.")
        messages.error(request, told, fail_silently=True)
        return Scope.of(())


def tenant_field(scope: Scope, *, label: Any = None, help_text: Any = "") -> forms.ChoiceField:
    """Return a field in which one of the scope's tenants, and no other, can be chosen."""
    choices = [(name, name or _("(none)")) for name in sorted(scope.tenants or ())]
    # To a field that need not be filled in, nothing at all is an answer; here it would be a tenant's name.
    return forms.ChoiceField(choices=choices, required="" not in scope, label=label, help_text=help_text)


def for_all_tenants(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Keep a page that adds up the jobs of all tenants from who may see those of some; another says why."""

    @wraps(view)
    def guarded(screen: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not scope_of(request).is_limited:
            return view(screen, request, *args, **kwargs)
        request.current_app = screen.admin_site.name
        frame = {"title": _("Numbers of all tenants"), "opts": screen.opts, "media": screen.media}
        context = screen.admin_site.each_context(request) | frame
        return TemplateResponse(request, "admin/django_workqueue/limited.html", context, status=403)

    return guarded
