"""
Telling how far a drain has come, from outside and without getting in its way.

Counting what is left would scan the table. A hundred jobs spread evenly over the backlog are looked up by their ids
instead, every ``LOOK_SECONDS``, which costs the server less than a hundredth of a core; all are counted once these
are gone. Every contestant is watched by the same means, and a job counts once its settlement is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .errors import BenchmarkError
from .fleet import Fleet, Worker

MARKERS = 100
LOOK_SECONDS = 0.02
STALLED_SECONDS = 120


def marker_numbers(jobs: int) -> list[int]:
    """Return the numbers of the jobs to look at, from the first to the last."""
    count = min(jobs, MARKERS)
    return [1 + round(place * (jobs - 1) / max(1, count - 1)) for place in range(count)]


@dataclass(slots=True)
class Timeline:
    """When which share of ``jobs`` was settled; ``begun`` and all moments by the monotonic clock."""

    jobs: int
    begun: float
    points: list[tuple[float, float]] = field(default_factory=list)
    wal_bytes: int = 0

    @property
    def ended(self) -> float:
        """The moment of the last look."""
        return self.points[-1][0]

    @property
    def first_share(self) -> float:
        """The share at the first look that saw any settled: where no start is known, the clock runs from there."""
        return next((share for _, share in self.points if share > 0), 0.0)

    def moment_of(self, share: float) -> float:
        """Return when ``share`` of the jobs was settled, between the last look that saw less and the next."""
        before, had = self.begun, 0.0
        for moment, has in self.points:
            if has >= share > had:
                return before + (moment - before) * (share - had) / (has - had)
            before, had = moment, max(had, has)
        return self.begun

    def rate(self, start: float = 0.0, end: float = 1.0) -> float:
        """Return the jobs settled per second between two shares."""
        return self.jobs * (end - start) / (self.moment_of(end) - self.moment_of(start))


@dataclass(frozen=True, slots=True)
class Watch:
    """``markers_left`` and ``jobs_left`` ask the database; the fleet is asked whether it lives."""

    jobs: int
    markers_left: Callable[[], int]
    jobs_left: Callable[[], int]
    fleet: Fleet

    def follow(self, begun: float, *, until: float = 1.0, look_seconds: float = LOOK_SECONDS) -> Timeline:
        """Look until ``until`` of the jobs are settled. Raises BenchmarkError when nothing happens any more."""
        timeline = Timeline(self.jobs, begun)
        share, moved = 0.0, begun
        while share < until:
            moment = time.monotonic()
            now_settled = self._share()
            timeline.points.append((moment, now_settled))
            if now_settled > share:
                share, moved = now_settled, moment
            elif moment - moved > STALLED_SECONDS:
                raise BenchmarkError(f"No job was settled for {STALLED_SECONDS} s.\n{logs_of(self.fleet.workers)}")
            self._require_life()
            time.sleep(look_seconds)
        return timeline

    def _share(self) -> float:
        count = min(self.jobs, MARKERS)
        gone = count - self.markers_left()
        if gone < count:
            return max(0, gone - 1) / max(1, count - 1)
        # The last marker may be settled before others that were claimed with it.
        return 1.0 if self.jobs_left() == 0 else (count - 1) / count

    def _require_life(self) -> None:
        if any(worker.exit_code for worker in self.fleet.workers):
            raise BenchmarkError(f"A process failed in the middle of a drain.\n{logs_of(self.fleet.workers)}")


def logs_of(workers: Iterable[Worker]) -> str:
    """Return the ends of what processes printed."""
    return "\n".join(f"{worker.name}: {worker.log[-2000:]}" for worker in workers)
