"""Look at dead letters by cause: one group for each task and kind of error."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from ..domain.fingerprints import normalised
from ..domain.scope import Scope, Tenants
from ..models import DeadLetter
from ..store import store_for
from .listing import WINDOW

PAGE = 50
COUNTED = 1000
"""Letters that are counted in a group; beyond it is known only that there are more."""
DAY, DAYS = timedelta(days=1), 14
DEATHS_READ = 500
"""Letters of a group, the newest, whose days are told."""
MOST = 2000
"""Groups that are looked through for the page that is asked for."""


class DeadGroup(NamedTuple):
    """The dead letters of one task that died of one kind of error."""

    fingerprint: str
    size: int
    """Up to COUNTED; COUNTED + 1 says that there are more."""
    sample: DeadLetter
    """The one that died last."""
    first_died_at: datetime

    @property
    def task(self) -> str:
        """Dotted path of the task."""
        return self.sample.task

    @property
    def error(self) -> str:
        """The error that they have in common, "Class: message", with "#" for what differs, and nothing masked."""
        return normalised(self.sample.veiled_error)

    @property
    def last_died_at(self) -> datetime:
        """When the group grew last."""
        return self.sample.died_at


class GroupPage(NamedTuple):
    """Groups in order, when they were read by the clock that stamps them, and whether there are more."""

    groups: list[DeadGroup]
    read_at: datetime
    has_more: bool


def dead_groups(
    *, page: int = 0, size: int | None = None, tenant: Tenants = None, database: str | None = None
) -> GroupPage:
    """
    Return one page of groups, from page 0 on, those that grew last first. A page has ``size`` of them, by default PAGE.

    With ``tenant`` they are groups of its letters alone, as far as these are among the WINDOW that died last of all.
    Three statements, however many letters there are.
    """
    store, scope, size = store_for(database), Scope.of(tenant), size or PAGE
    cut = {"limit": size + 1, "offset": page * size}
    if scope.is_limited:
        rows = store.dead_groups_of(scope, window=WINDOW, **cut)
    else:
        rows = store.dead_groups(most=MOST, cap=COUNTED + 1, **cut)
    ids = {pk for row in rows[:size] for pk in (row.newest, row.oldest)}
    letters = DeadLetter.objects.using(store.alias).in_bulk(list(ids))
    found = [
        DeadGroup(row.fingerprint, row.size, letters[row.newest], letters[row.oldest].died_at)
        for row in rows[:size]
        # A letter may be requeued between the two statements.
        if row.newest in letters and row.oldest in letters
    ]
    return GroupPage(found, store.now(), len(rows) > size)


def deaths_by_day(page: GroupPage, *, database: str | None = None) -> dict[str, list[int]]:
    """
    Return how many of each group on a page died in each of the last DAYS days, oldest first, by one statement.

    The newest DEATHS_READ of a group are told; in a larger one the days before those are empty.
    """
    marks = [group.fingerprint for group in page.groups]
    deaths = store_for(database).deaths(marks, page.read_at - DAYS * DAY, DEATHS_READ)
    return {mark: _by_day(moments, page.read_at) for mark, moments in deaths.items()}


def _by_day(moments: Iterable[datetime], now: datetime) -> list[int]:
    counts = [0] * DAYS
    for each in moments:
        counts[DAYS - 1 - min(max(now - each, timedelta()) // DAY, DAYS - 1)] += 1
    return counts
