"""Health: whether the queue keeps within what its operators find bearable, from bounded reads."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ..domain.states import PauseKind
from ..models import DeadLetter, Pause
from ..store import Store, store_for
from .listing import LAST_DEAD, WINDOW
from .operate import serves, silence


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is still bearable, for each queue. None bears anything."""

    max_age: timedelta | None = None
    """How long the oldest ready job may have waited."""
    max_backlog: int | None = None
    """How many jobs may be ready."""
    max_dead: int | None = None
    """How many dead letters nobody has acknowledged yet."""
    min_workers: int | None = None
    """How many live worker processes serve a queue that is not paused."""
    queues: Sequence[str] = ()
    """Names, or patterns in shell style; empty for every queue that has ready work or dead letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHealth:
    """One queue, as far as it was looked at: a count stops one above its bound."""

    queue: str
    paused: bool
    oldest_age_seconds: float
    ready: int
    dead: int
    workers: int


@dataclass(frozen=True, slots=True)
class Breach:
    """A bound that is passed: of which queue, which one, and by what."""

    queue: str
    bound: str
    allowed: float
    found: float


@dataclass(frozen=True, slots=True)
class Health:
    """What was found. Healthy without a breach."""

    queues: list[QueueHealth] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)


def health(bounds: Bounds, *, database: str | None = None) -> Health:
    """Return how each queue stands, and which bounds are passed. Nothing is counted further than its bound."""
    store = store_for(database)
    served = [worker.queues for worker in store.live_workers(silence())]
    pauses = Pause.objects.using(store.alias).filter(kind=PauseKind.QUEUE)
    paused = set(pauses.values_list("name", flat=True))
    ready = {each.queue: each for each in store.ready_work((bounds.max_backlog or 0) + 1)}
    dead = _dead(store)
    queues = [
        QueueHealth(
            queue=name,
            paused=name in paused,
            oldest_age_seconds=ready[name].oldest_age_seconds if name in ready else 0.0,
            ready=ready[name].ready if name in ready else 0,
            dead=dead[name],
            workers=sum(serves(patterns, name) for patterns in served),
        )
        for name in _names(bounds.queues, {*ready, *dead})
    ]
    return Health(queues, [breach for each in queues for breach in _breaches(each, bounds)])


def _names(wanted: Sequence[str], found: set[str]) -> list[str]:
    """Return the queues to look at: those that are named, though nothing is in them, and those of the patterns."""
    if not wanted:
        return sorted(found)
    named = {name for name in wanted if not set(name) & set("*?[")}
    return sorted(named | {name for name in found if any(fnmatch.fnmatchcase(name, each) for each in wanted)})


def _dead(store: Store) -> Counter[str]:
    """Count by queue what nobody has acknowledged, among the last WINDOW dead letters."""
    letters = DeadLetter.objects.using(store.alias).order_by(*LAST_DEAD.columns)
    rows = letters.values_list("queue", "acknowledged_at")[:WINDOW]
    return Counter(queue for queue, acknowledged_at in rows.iterator(chunk_size=5000) if acknowledged_at is None)


def _breaches(queue: QueueHealth, bounds: Bounds) -> Iterator[Breach]:
    found = {"max_age": queue.oldest_age_seconds, "max_backlog": queue.ready, "max_dead": queue.dead}
    allowed = {
        "max_age": None if bounds.max_age is None else bounds.max_age.total_seconds(),
        "max_backlog": bounds.max_backlog,
        "max_dead": bounds.max_dead,
    }
    for bound, most in allowed.items():
        if most is not None and found[bound] > most:
            yield Breach(queue.queue, bound, most, found[bound])
    if bounds.min_workers is not None and queue.workers < bounds.min_workers and not queue.paused:
        yield Breach(queue.queue, "min_workers", bounds.min_workers, queue.workers)
