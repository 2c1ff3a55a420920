"""How much a queue's limits leave to be begun. Pure: counts and times are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

LimitedKey = tuple[str, str, str]
"""A queue, a tenant and one of its concurrency keys."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``count`` jobs begun in each window of ``period``."""

    count: int
    period: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the claims of a queue; None bounds nothing."""

    concurrency: int | None = None
    """Jobs of the queue that run at once, in all workers together."""
    tenant_concurrency: int | None = None
    """Jobs of one tenant of the queue that run at once, in all workers together."""
    rate: Rate | None = None

    def __bool__(self) -> bool:
        return self != NO_LIMITS

    @property
    def count_leased(self) -> bool:
        """Whether it matters how many jobs run."""
        return self.concurrency is not None or self.tenant_concurrency is not None


NO_LIMITS = Limits()


class Window(NamedTuple):
    """A rate's window, which begins with the first job that is begun after the last one's end."""

    started_at: datetime
    taken: int

    def left(self, rate: Rate) -> int:
        """Return how many jobs may still be begun in it."""
        return max(0, rate.count - self.taken)

    def ends_in(self, rate: Rate, now: datetime) -> timedelta:
        """Return how long it still lasts."""
        return self.started_at + rate.period - now


def window_at(now: datetime, rate: Rate, started_at: datetime | None, taken: int) -> Window:
    """Return the window that holds at ``now``: the stored one, or a new one once that is over."""
    # A window in the future was stamped by a clock that has been set back since; waiting for it could take for ever.
    if started_at is None or not started_at <= now < started_at + rate.period:
        return Window(now, 0)
    return Window(started_at, taken)


class Room(NamedTuple):
    """What may be claimed now: so many jobs in all, and so many of each tenant."""

    total: int
    tenants: Mapping[str, int]
    """Of those that run something; the others have ``each``."""
    each: int

    @property
    def full(self) -> frozenset[str]:
        """The tenants of which nothing more may be begun."""
        return frozenset(tenant for tenant, room in self.tenants.items() if room <= 0)


def room(limits: Limits, most: int, leased: Mapping[str, int], window: Window | None) -> Room:
    """Return how many of ``most`` jobs may be claimed, with so many ``leased`` for each tenant."""
    total = most
    if limits.concurrency is not None:
        total = min(total, limits.concurrency - sum(leased.values()))
    if limits.rate is not None and window is not None:
        total = min(total, window.left(limits.rate))
    if limits.tenant_concurrency is None:
        return Room(total, {}, total)
    each = limits.tenant_concurrency
    return Room(total, {tenant: each - count for tenant, count in leased.items()}, each)


class Hold(NamedTuple):
    """Why a queue is not to be asked for a while, though it may have work: its limits leave nothing."""

    wait: timedelta
    firm: bool
    """Whether nothing that happens meanwhile can change it; only time ends a rate's window."""
