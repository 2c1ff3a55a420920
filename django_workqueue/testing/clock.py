"""Letting time pass, for the rows."""

from __future__ import annotations

from datetime import timedelta

from ..lifecycle import operate
from ..store import Store, store_for


def advance(seconds: float | timedelta, *, database: str | None = None) -> None:
    """
    Let ``seconds`` pass for the queue, and do what workers would have done by then, save running jobs.

    Every stored time moves back, since the database's clock cannot be set: jobs come due and leases lapse. Then due
    jobs become ready, and the jobs of lapsed leases come back or become dead letters. ``timezone.now()`` stays as it
    is.
    """
    store = store_for(database)
    store.shift(seconds.total_seconds() if isinstance(seconds, timedelta) else seconds)
    maintain(store)


def maintain(store: Store) -> None:
    """Do what every worker does for the whole queue at any moment: promote what is due, reap what has lapsed."""
    while store.promote():
        pass
    operate.reap_once(database=store.alias)
