"""
Limits: let jobs go that were withheld, once their concurrency key has a slot or their task is resumed.

Whoever frees a slot asks for admission afterwards, outside its own transaction. Whatever is missed, as when a process
is killed in between, the sweep mends: the rows alone say what may go.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from django.db import Error

from ..domain.limits import LimitedKey
from ..domain.states import JobState
from ..models import Job
from ..store import Store
from ..store.limits import FIRST_KEY, KEYS_AT_ONCE
from ..store.reap import Lanes
from .wake import notify

logger = logging.getLogger("django_workqueue.limits")


def keys_of(jobs: Iterable[Job]) -> set[LimitedKey]:
    """Return the keys of those of these jobs that are blocked."""
    blocked = (job for job in jobs if job.state == JobState.BLOCKED)
    return {(job.queue, job.tenant, job.concurrency_key) for job in blocked if job.concurrency_key is not None}


def admit(store: Store, keys: Collection[LimitedKey]) -> Lanes:
    """
    Make blocked jobs of these keys ready as far as slots are free, wake workers, and return the lanes.

    A failure is logged only: the sweep does it a little later.
    """
    if not keys:
        return set()
    try:
        lanes = store.admit(keys)
    except Error:
        logger.warning("Jobs of %d concurrency keys wait for the next sweep.", len(keys), exc_info=True)
        return set()
    notify(store, lanes)
    return lanes


def admit_on_commit(store: Store, keys: Collection[LimitedKey]) -> None:
    """Do so once the caller's transaction is committed: nobody else could count what it has not committed."""
    if keys:
        store.on_commit(lambda: admit(store, keys))


def unpark(store: Store, tasks: Collection[str]) -> Lanes:
    """Let all parked jobs of these tasks go, in batches, and return the lanes that have work by that."""
    lanes: Lanes = set()
    while (unparked := store.unpark(tasks)).number:
        lanes |= unparked.lanes
        admit_on_commit(store, unparked.keys)
    return lanes


class Sweep:
    """Looks for what was missed: free slots with jobs that wait for them, parked jobs whose task is not paused."""

    def __init__(self) -> None:
        self._after: LimitedKey = FIRST_KEY

    @property
    def is_at_the_beginning(self) -> bool:
        """Whether the next look begins with the first key."""
        return self._after == FIRST_KEY

    def run(self, store: Store) -> Lanes:
        """Mend what one bounded look finds, and return the lanes that got work. The next one goes on from there."""
        found = store.blocked_keys(after=self._after, limit=KEYS_AT_ONCE)
        self._after = found[-1].key if len(found) == KEYS_AT_ONCE else FIRST_KEY
        lanes = admit(store, {blocked.key for blocked in found if blocked.has_room})
        return lanes | self._unpark(store)

    def _unpark(self, store: Store) -> Lanes:
        parked = set(store.parked_tasks())
        if not parked or not (resumed := parked - store.pauses().tasks):
            return set()
        lanes = unpark(store, resumed)
        notify(store, lanes)
        return lanes


def let_all_go(store: Store) -> None:
    """Sweep until every key was looked at: what each worker does in the course of time."""
    sweep = Sweep()
    sweep.run(store)
    while not sweep.is_at_the_beginning:
        sweep.run(store)
