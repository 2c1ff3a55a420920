"""Which queues and lanes the dispatcher looks at next: its memory of all queues, and the news that reach it."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

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
        self._paused: set[str] = set()
        self._pauses_seen = float("-inf")
        self._echoes: deque[tuple[float, tuple[str, str]]] = deque()
        self._forget_at = time.monotonic() + FORGET_SECONDS
        self.news = News()

    def __len__(self) -> int:
        """Return the number of lanes that may have work."""
        return sum(len(rotation) for queue, rotation in self._rotations.items() if queue not in self._paused)

    @property
    def is_empty(self) -> bool:
        """Whether no lane is remembered, not even of a paused queue."""
        return not any(self._rotations.values())

    def read_news(self) -> None:
        """Learn the lanes that were heard of, and those whose senders kept quiet for a moment."""
        now = time.monotonic()
        while self._echoes and self._echoes[0][0] <= now:
            self._learn(self._echoes.popleft()[1])
        while self.news.lanes:
            lane = self.news.lanes.popleft()
            self._learn(lane)
            self._echoes.append((now + _ECHO_SECONDS, lane))
        while self.news.returned:
            queue, tenant = self.news.returned.popleft()
            self._learn((queue, tenant))
            if rotation := self._rotations.get(queue):
                rotation.forget_marks([tenant])
        if now >= self._forget_at:
            self._forget_at = now + FORGET_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311 - spreading, no secret
            self.forget_marks()

    def next_echo(self) -> float | None:
        """Return the seconds until a lane is to be looked at once more, if any is."""
        return max(0.0, self._echoes[0][0] - time.monotonic()) if self._echoes else None

    def walk(self, store: Store) -> None:
        """Look in the database for pauses and for lanes with ready work."""
        queues = store.ready_queues()
        if queues:
            self.refresh_pauses(store)
        for queue in queues:
            if self._serves(queue) and queue not in self._paused:
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
        self._rotation(queue).learn(found)

    def refresh_pauses(self, store: Store) -> None:
        """Look which queues are paused, if the last look is more than a second old."""
        if time.monotonic() - self._pauses_seen >= _PAUSES_SECONDS:
            self._paused = store.paused_queues()
            self._pauses_seen = time.monotonic()

    def turns(self) -> Iterator[tuple[str, Rotation]]:
        """
        Yield the queues that may have work, in the order in which they are to be asked.

        Queues take turns: one that was served goes behind the others. In strict order they follow the command line.
        """
        for queue in self._order():
            if self._rotations[queue] and queue not in self._paused:
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
            self._rotation(queue).learn([tenant])

    def _rotation(self, queue: str) -> Rotation:
        return self._rotations.setdefault(queue, Rotation())

    def _serves(self, queue: str) -> bool:
        return matches(self._options.queues, queue) and not matches(self._options.exclude_queues, queue)


def _place(patterns: Iterable[str], queue: str) -> int:
    return next((place for place, pattern in enumerate(patterns) if matches([pattern], queue)), 0)
