"""
Limits that hold for all workers together, kept in rows alone.

A job with a concurrency key is stored as blocked. Admission makes it ready while fewer of its key are ready or leased
than its limit says, and goes alone: it holds the row of its queue. So ready jobs of a key never exceed the limit,
workers claim them like any others, and there is no counter that a crash could leave wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.db.models import F, QuerySet

from ..domain.limits import LimitedKey, Window
from ..domain.states import JobState
from ..models import Job, Queue
from ..models.base import Literal
from ..models.job import JobQuerySet
from .enqueue import batches
from .pauses import Pausing

KEYS_AT_ONCE = 100
"""Keys admitted in one transaction, for which the queue's row is held."""
FIRST_KEY: LimitedKey = ("", "", "")


class BlockedKey(NamedTuple):
    """A concurrency key for which jobs wait, and whether one more of them could be ready."""

    key: LimitedKey
    has_room: bool


class Limiting(Pausing):
    """Admission of jobs with a concurrency key, and what claims within a queue's limits stand on."""

    @contextmanager
    def exclusive(self, queue: str) -> Iterator[Queue]:
        """
        Hold the row of ``queue`` for one transaction, so that whoever counts and then takes does so alone.

        Everything read inside is read after the row was had, and sees what the one before has done.
        """
        outermost = not self.connection.in_atomic_block
        with self.transaction():
            self._fit(outermost=outermost)
            yield self._lock_queue(queue) or self._lock_new_queue(queue)

    def leased_tenants(self, queue: str) -> Counter[str]:
        """Count the jobs of ``queue`` that workers hold, by tenant. Bounded by the slots of the fleet."""
        held = Job.objects.using(self.alias).filter(lease__isnull=False, lease__queue=queue)
        return Counter(held.order_by().values_list("tenant", flat=True))

    def write_window(self, queue: str, window: Window) -> None:
        """Remember how much of a rate's window is taken."""
        row = Queue.objects.using(self.alias).filter(pk=queue)
        row.update(window_started_at=window.started_at, window_taken=window.taken)

    def depth(self, queue: str, tenant: str, cap: int) -> int:
        """Count the jobs of a lane that wait for a worker or for a slot of their key, up to ``cap``."""
        lane = Job.objects.using(self.alias).filter(queue=queue, tenant=tenant)
        ready = lane.ready()[:cap].count()
        return ready + lane.blocked()[: cap - ready].count() if ready < cap else ready

    def admit(self, keys: Iterable[LimitedKey]) -> set[tuple[str, str]]:
        """Make blocked jobs of these keys ready, as far as their limits go, and return the lanes that got some."""
        queues: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for queue, tenant, key in keys:
            queues[queue].add((tenant, key))
        lanes = set()
        for queue, pairs in sorted(queues.items()):
            for some in batches(sorted(pairs), KEYS_AT_ONCE):
                paused = self.pauses().tasks
                with self.exclusive(queue):
                    lanes |= {(queue, tenant) for tenant in self._admit(queue, some, paused)}
        return lanes

    def blocked_keys(self, *, after: LimitedKey = FIRST_KEY, limit: int = KEYS_AT_ONCE) -> list[BlockedKey]:
        """Return up to ``limit`` keys for which jobs wait, in order, beginning behind ``after``."""
        found: list[BlockedKey] = []
        while len(found) < limit and (key := self._next_blocked(found[-1].key if found else after)):
            used, head = self._slots(key), self._waiting_for(key, ()).first()
            found.append(BlockedKey(key, head is not None and used < (head.concurrency_limit or 1)))
        return found

    def has_withheld(self) -> bool:
        """Whether any job is blocked for its key, or parked. Two index descents."""
        blocked = Job.objects.using(self.alias).blocked()
        return blocked.exists() or self._parked().exists()

    def ensure_queue(self, name: str) -> None:
        """Make sure that the row of queue ``name`` exists."""
        Queue.objects.using(self.alias).bulk_create([Queue(name=name)], ignore_conflicts=True)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _fit(self, *, outermost: bool) -> None:
        """Make a transaction that was just begun fit for counting under a lock, also on a connection of the project."""

    def _lock_queue(self, name: str) -> Queue | None:
        rows = Queue.objects.using(self.alias).filter(pk=name)
        if self.connection.features.has_select_for_update:
            return rows.select_for_update().first()
        # One who writes first holds the whole database; one who reads first may not be let to write any more.
        rows.update(window_taken=F("window_taken"))
        return rows.first()

    def _lock_new_queue(self, name: str) -> Queue:
        self.ensure_queue(name)
        return self._lock_queue(name) or Queue(name=name)

    def _admit(self, queue: str, pairs: Collection[tuple[str, str]], paused: Collection[str]) -> set[str]:
        """Admit jobs of these (tenant, key) pairs, the queue's row being held, and return the tenants that got some."""
        return {tenant for tenant, key in pairs if self._admit_key((queue, tenant, key), paused)}

    def _admit_key(self, key: LimitedKey, paused: Collection[str]) -> int:
        used, waiting = self._slots(key), self._waiting_for(key, paused)
        head = waiting.first()
        free = (head.concurrency_limit or 1) - used if head else 0
        if free <= 0:
            return 0
        # Of jobs that disagree about the limit, as those of two deploys do, each waits for its own.
        rows = self._unheld(waiting).values_list("pk", "concurrency_limit")[:free]
        ids = [pk for place, (pk, limit) in enumerate(rows) if used + place < (limit or 1)]
        return Job.objects.using(self.alias).filter(pk__in=ids).update(state=JobState.READY)

    def _slots(self, key: LimitedKey) -> int:
        """Count the slots of a key that are taken."""
        taken = [Literal(JobState.READY.value), Literal(JobState.LEASED.value)]
        return self._of_key(key).filter(state__in=taken).count()

    def _waiting_for(self, key: LimitedKey, paused: Collection[str]) -> QuerySet[Job]:
        waiting = self._of_key(key).blocked().order_by("rank", "ready_at", "id")
        return waiting.exclude(task__in=paused) if paused else waiting

    def _next_blocked(self, after: LimitedKey) -> LimitedKey | None:
        queue, tenant, key = after
        columns = ("queue", "tenant", "concurrency_key")
        blocked = Job.objects.using(self.alias).blocked().order_by(*columns).values_list(*columns)
        # One after the other: a condition for all three would be met by a walk through all that lies before.
        return (
            blocked.filter(queue=queue, tenant=tenant, concurrency_key__gt=key).first()
            or blocked.filter(queue=queue, tenant__gt=tenant).first()
            or blocked.filter(queue__gt=queue).first()
        )

    def _of_key(self, key: LimitedKey) -> JobQuerySet:
        queue, tenant, name = key
        return Job.objects.using(self.alias).filter(queue=queue, tenant=tenant, concurrency_key=name)
