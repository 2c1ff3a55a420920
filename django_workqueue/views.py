"""The numbers of the queue over HTTP, for those who hold the token and for staff who may see queues."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import add_never_cache_headers
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe

from .conf import get_settings
from .exceptions import TenantScopeError
from .lifecycle.scope import scope_of
from .metrics import as_json, exposition

logger = logging.getLogger("django_workqueue.scope")

PERMISSION = "django_workqueue.view_queue"
TEXT = "text/plain; charset=utf-8"

View = Callable[[HttpRequest], HttpResponse]


def _guarded(view: View) -> View:
    """Let in who may see the numbers, keep them out of caches, and answer for a database that is away."""

    @require_safe
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if not _may_see(request):
            headers = {"WWW-Authenticate": "Bearer"}
            return HttpResponse(
                "Send the token, or sign in as staff.\n", status=401, headers=headers, content_type=TEXT
            )
        try:
            response = view(request)
        except DatabaseError:
            text = "The database could not be read.\n"
            response = HttpResponse(text, status=HTTPStatus.SERVICE_UNAVAILABLE, content_type=TEXT)
        add_never_cache_headers(response)
        return response

    return guarded


def _told(status: HTTPStatus, text: str) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type=TEXT)


def _may_see(request: HttpRequest) -> bool:
    token = get_settings().metrics_token
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if token is not None and scheme.lower() == "bearer" and constant_time_compare(given.strip(), token):
        return True
    user = getattr(request, "user", None)
    return user is not None and user.is_active and user.is_staff and user.has_perm(PERMISSION) and _sees_all(user)


def _sees_all(user: Any) -> bool:
    """Whether the user may see the jobs of all tenants, as the numbers do not tell one's from another's."""
    try:
        return not scope_of(user).is_limited
    except TenantScopeError:
        logger.exception("The numbers are not shown to %s.", user)
        return False


@_guarded
def prometheus(_request: HttpRequest) -> HttpResponse:
    """Answer with what Prometheus scrapes."""
    try:
        content, content_type = exposition()
    except ImproperlyConfigured as error:
        return _told(HTTPStatus.NOT_IMPLEMENTED, str(error))
    return HttpResponse(content, content_type=content_type)


@_guarded
def numbers(_request: HttpRequest) -> HttpResponse:
    """Answer with the numbers as JSON."""
    return JsonResponse(as_json())
