"""Which queues and lanes the dispatcher looks at next: its memory of all queues, and the news that reach it."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..domain.limits import Hold
from ..domain.pauses import NO_PAUSES
from ..domain.rotation import Rotation
from ..lifecycle.operate import matches
from ..lifecycle.wake import QUIET_SECONDS
from ..store import Store
from .options import WorkerOptions

FORGET_SECONDS = 5.0
"""How long marks are kept: rows that were committed long after their stamp are found by then."""
LANES_PER_WALK = 2000
_PAUSES_SECONDS = 1.0
# A little past the senders' silence, so that what was suppressed in it is committed and seen.
_ECHO_SECONDS = QUIET_SECONDS * 1.5


@dataclass(slots=True)
class News:
    """Lanes that have work, as other threads heard. Appending and taking are safe from any thread."""

    lanes: deque[tuple[str, str]] = field(default_factory=deque)
    returned: deque[tuple[str, str]] = field(default_factory=deque)
    """Lanes to which jobs came back, which may lie before their marks."""
    hearing: bool = False
    """Whether the listener hears, so that looking from time to time is only the safety net."""
    missed: bool = False
    """Whether news may have been missed since the last look."""

    def hear(self, hearing: bool) -> None:
        """Note that the listener hears from now on, or does no longer; either way something may have been missed."""
        self.hearing = hearing
        self.missed = True


class LaneBook:
    """The lanes of every queue that this worker serves. Belongs to the dispatcher."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._rotations: dict[str, Rotation] = {}
        self._cursors: dict[str, str] = {}
        self.pauses = NO_PAUSES
        self._pauses_seen = float("-inf")
        self._held: dict[str, tuple[float, bool]] = {}
        """Queues whose limits leave nothing: until when, and whether only time changes that."""
        self._echoes: deque[tuple[float, tuple[str, str]]] = deque()
        self._forget_at = time.monotonic() + FORGET_SECONDS
        self.news = News()

    def __len__(self) -> int:
        """Return the number of lanes that may have work and may be asked for it."""
        return sum(self.open_lanes(queue) for queue in self._rotations)

    def open_lanes(self, queue: str) -> int:
        """Return the number of lanes of ``queue`` that may be asked: none while it is paused or held back."""
        if queue in self.pauses.queues or queue in self._held:
            return 0
        rotation = self._rotations[queue]
        return len(rotation) - sum(tenant in rotation for tenant in self.pauses.tenants)

    @property
    def is_empty(self) -> bool:
        """Whether no lane is remembered, not even of a paused queue."""
        return not any(self._rotations.values())

    @property
    def holds_back(self) -> bool:
        """Whether a queue that has work is held back by its limits."""
        return any(self._rotations[queue] for queue in self._held)

    def read_news(self) -> None:
        """Learn the lanes that were heard of, and those whose senders kept quiet for a moment."""
        now = time.monotonic()
        if self._held:
            self._let_go_in_time(now)
        while self._echoes and self._echoes[0][0] <= now:
            self._learn(self._echoes.popleft()[1])
        while self.news.lanes:
            lane = self.news.lanes.popleft()
            self._learn(lane)
            self._echoes.append((now + _ECHO_SECONDS, lane))
        while self.news.returned:
            queue, tenant = self.news.returned.popleft()
            self._learn((queue, tenant))
            self.let_go(queue)
            if rotation := self._rotations.get(queue):
                rotation.forget_marks([tenant])
        if now >= self._forget_at:
            self._forget_at = now + FORGET_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311 - spreading, no secret
            self.forget_marks()

    def next_look(self) -> float | None:
        """Return the seconds until a lane is to be looked at again, or a queue no longer held back; None for never."""
        times = [until for until, _ in self._held.values()]
        if self._echoes:
            times.append(self._echoes[0][0])
        return max(0.0, min(times) - time.monotonic()) if times else None

    def hold(self, queue: str, hold: Hold) -> None:
        """Ask ``queue`` for nothing for a while."""
        self._held[queue] = (time.monotonic() + hold.wait.total_seconds(), hold.firm)

    def let_go(self, queue: str | None = None, *, firm: bool = False) -> None:
        """Ask ``queue``, or all, again, as something happened that may leave more to claim; ``firm`` ones too."""
        for name in [queue] if queue is not None else list(self._held):
            if name in self._held and (firm or not self._held[name][1]):
                del self._held[name]

    def _let_go_in_time(self, now: float) -> None:
        for queue in [queue for queue, (until, _) in self._held.items() if until <= now]:
            del self._held[queue]

    def walk(self, store: Store) -> None:
        """Look in the database for pauses and for lanes with ready work."""
        queues = store.ready_queues()
        if queues:
            self.refresh_pauses(store)
        for queue in queues:
            if self._serves(queue) and queue not in self.pauses.queues:
                self._walk_lanes(store, queue)

    def _walk_lanes(self, store: Store, queue: str) -> None:
        """Learn a queue's lanes; where there are very many, the next walk goes on behind the last one."""
        cursor = self._cursors.pop(queue, None)
        found = store.lanes(queue, after=cursor, limit=LANES_PER_WALK)
        if cursor is not None and len(found) < LANES_PER_WALK:
            # The end was reached, which is not to say that the beginning is still empty.
            found += store.lanes(queue, limit=LANES_PER_WALK - len(found))
        elif len(found) == LANES_PER_WALK:
            self._cursors[queue] = found[-1]
        self._learn_lanes(queue, found)

    def refresh_pauses(self, store: Store) -> None:
        """Look what is paused, if the last look is more than a second old."""
        if time.monotonic() - self._pauses_seen >= _PAUSES_SECONDS:
            self.pauses = store.pauses()
            self._pauses_seen = time.monotonic()

    def turns(self) -> Iterator[tuple[str, Rotation]]:
        """
        Yield the queues that may have work, in the order in which they are to be asked.

        Queues take turns: one that was served goes behind the others. In strict order they follow the command line.
        """
        for queue in self._order():
            if self.open_lanes(queue):
                yield queue, self._rotations[queue]

    def served(self, queue: str) -> None:
        """Note that ``queue`` had its turn."""
        if not self._options.strict_order:
            self._rotations[queue] = self._rotations.pop(queue)

    def forget_marks(self) -> None:
        """Forget all marks."""
        for rotation in self._rotations.values():
            rotation.forget_marks()

    def _order(self) -> list[str]:
        names = list(self._rotations)
        if not self._options.strict_order:
            return names
        return sorted(names, key=lambda name: (_place(self._options.queues, name), name))

    def _learn(self, lane: tuple[str, str]) -> None:
        queue, tenant = lane
        if self._serves(queue):
            self._learn_lanes(queue, [tenant])

    def _learn_lanes(self, queue: str, tenants: Sequence[str]) -> None:
        rotation = self._rotation(queue)
        known = len(rotation)
        rotation.learn(tenants)
        if queue in self._held and len(rotation) > known:
            # The limit that holds it back may be that of the other tenants.
            self.let_go(queue)

    def _rotation(self, queue: str) -> Rotation:
        return self._rotations.setdefault(queue, Rotation())

    def _serves(self, queue: str) -> bool:
        return matches(self._options.queues, queue) and not matches(self._options.exclude_queues, queue)


def _place(patterns: Iterable[str], queue: str) -> int:
    return next((place for place, pattern in enumerate(patterns) if matches([pattern], queue)), 0)
