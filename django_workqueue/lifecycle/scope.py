"""Whose jobs a user may see: asked of the project's own function, and never guessed where that does not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..conf import get_settings
from ..domain.hooks import find
from ..domain.scope import Scope
from ..exceptions import TenantScopeError
from ..models.base import NAME_LENGTH

MOST_TENANTS = 1000
"""Tenants that one user may be limited to: their names travel in each statement."""


def scope_of(user: Any) -> Scope:
    """
    Return whose jobs ``user`` may see, by ``WORKQUEUE["TENANT_SCOPE"]``; those of all tenants without that setting.

    Raises TenantScopeError when the function fails, or returns what names no tenants. Then nothing may be shown.
    """
    path = get_settings().tenant_scope
    if path is None:
        return Scope()
    try:
        return _read(find(path)(user))
    except Exception as error:
        raise TenantScopeError(path, f"{type(error).__name__}: {error}") from error


def _read(given: Any) -> Scope:
    if given is None:
        return Scope()
    # A text would be taken for its letters, which may be names of other tenants.
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"it returned {given!r}, which is neither a collection of names nor None")
    names = frozenset(given)
    if len(names) > MOST_TENANTS:
        raise ValueError(f"it returned {len(names)} tenants, and the most is {MOST_TENANTS}; None stands for all")
    for name in names:
        if not isinstance(name, str) or len(name) > NAME_LENGTH or "\x00" in name:
            raise ValueError(f"it returned {name!r} among the names, which no tenant can have")
    return Scope(names)
