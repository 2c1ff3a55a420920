"""Letting time pass, for the rows."""

from __future__ import annotations

from datetime import timedelta

from ..lifecycle import operate
from ..lifecycle.limits import let_all_go
from ..lifecycle.schedule import review, tick
from ..store import Store, store_for


def advance(seconds: float | timedelta, *, database: str | None = None) -> None:
    """
    Let ``seconds`` pass for the queue, and do what workers would have done by then, save running jobs.

    Every stored time moves back, since the database's clock cannot be set: jobs come due and leases lapse. Then due
    jobs become ready, and the jobs of lapsed leases come back or become dead letters. ``timezone.now()`` stays as it
    is, save for schedules: what is due by the time that has passed in all is enqueued, and its jobs are told that
    firing.
    """
    store = store_for(database)
    # What was not planned yet would be planned for the time after, as if it had only just been made.
    _plan(store)
    store.shift(seconds.total_seconds() if isinstance(seconds, timedelta) else seconds)
    maintain(store)


def maintain(store: Store) -> None:
    """Do what every worker does at any moment: fire, promote what is due, reap what has lapsed, let go what may go."""
    fire(store)
    while store.promote():
        pass
    operate.reap_once(database=store.alias)
    if store.has_withheld():
        let_all_go(store)


def fire(store: Store) -> None:
    """Fire the schedules that are due. Those that were made or edited since are planned first."""
    if _plan(store):
        while tick(store).lanes:
            pass


def _plan(store: Store) -> bool:
    """Plan every schedule that is not planned, and return whether any is on."""
    reviewed = review(store)
    any_enabled = reviewed.any_enabled
    while reviewed.behind:
        reviewed = review(store, reviewed.behind)
        any_enabled |= reviewed.any_enabled
    return any_enabled


def next_firing(store: Store) -> timedelta | None:
    """Return how long until a schedule fires; None when none will."""
    return min((each.wait for each in store.upcoming_schedules(limit=1)), default=None)
