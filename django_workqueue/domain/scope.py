"""Scope: whose jobs somebody may see and touch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeVar

Tenants = str | Collection[str] | None
"""One tenant, or several; None stands for all. The empty name is that of the jobs that have none."""

Rows = TypeVar("Rows", bound=Any)


@dataclass(frozen=True, slots=True)
class Scope:
    """The tenants whose rows are there for somebody. The rows of all others do not exist for them."""

    tenants: frozenset[str] | None = None
    """None for those of all."""

    @classmethod
    def of(cls, tenants: Tenants) -> Scope:
        """Return the scope of these tenants."""
        if tenants is None:
            return cls()
        return cls(frozenset((tenants,) if isinstance(tenants, str) else tenants))

    @property
    def is_limited(self) -> bool:
        """Whether there are tenants outside it, or may be."""
        return self.tenants is not None

    @property
    def only(self) -> str | None:
        """The one tenant that it has; None where it has none or several."""
        return next(iter(self.tenants)) if self.tenants is not None and len(self.tenants) == 1 else None

    def __contains__(self, tenant: str) -> bool:
        return self.tenants is None or tenant in self.tenants

    def __and__(self, other: Scope) -> Scope:
        """Return the scope of the tenants that are in both."""
        if self.tenants is None or other.tenants is None:
            return other if self.tenants is None else self
        return Scope(self.tenants & other.tenants)

    def share(self, rows: Rows) -> Rows:
        """Return ``rows`` that belong to no tenant, such as workers: all, unless no tenant is in it."""
        shared: Rows = rows if self.tenants is None or self.tenants else rows.none()
        return shared

    def apply(self, rows: Rows, column: str = "tenant") -> Rows:
        """Return those of ``rows``, a queryset, whose tenant is in it."""
        if self.tenants is None:
            return rows
        limited: Rows = rows.filter(**{f"{column}__in": sorted(self.tenants)})
        return limited
