"""How often a worker looks at the schedules: as seldom as it can without being late."""

from __future__ import annotations

import time

from ..lifecycle.declare import register
from ..lifecycle.schedule import Reviewed, review, tick
from ..store import Store
from ..store.reap import Lanes

REVIEW_SECONDS = 5.0
"""Within which an edited, added or switched schedule is seen."""
NONE_SECONDS = 10.0
"""The same while there is no schedule at all."""
LOCKED_SECONDS = 0.25
"""Until the next look at what is due and in somebody else's hands."""


class Timekeeper:
    """One process's share in firing the schedules. It knows when the next one is due, and sleeps until then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._registered = False
        self._review_at = 0.0
        self._reviewed = Reviewed(0, any_enabled=False, rows=0)

    def look(self) -> tuple[Lanes, float]:
        """Fire what is due, and return the lanes that have new jobs and the seconds until the next look."""
        if not self._registered:
            register(self._store)
            self._registered = True
        if time.monotonic() >= self._review_at:
            self._review()
        until_review = max(0.0, self._review_at - time.monotonic())
        if not self._reviewed.any_enabled:
            return set(), until_review
        ticked = tick(self._store)
        if ticked.lanes:
            return ticked.lanes, 0.0
        if ticked.wait is None:
            return set(), until_review
        return set(), min(ticked.wait.total_seconds() or LOCKED_SECONDS, until_review)

    def _review(self) -> None:
        before = self._reviewed
        self._reviewed = review(self._store, before.behind)
        if before.behind or self._reviewed.behind:
            # One of several pages tells nothing about the others.
            self._reviewed = self._reviewed._replace(any_enabled=True)
        seconds = REVIEW_SECONDS if self._reviewed.rows or before.behind else NONE_SECONDS
        self._review_at = time.monotonic() + seconds
