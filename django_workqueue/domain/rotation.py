"""
A worker's memory of the lanes of one queue: whose turn it is, and where each lane's ready work begins.

Finding the lanes with work costs an index descent for each, so a worker keeps them; a lane that a claim found empty is
dropped and comes back by a notification or the next walk. A mark remembers where the last claim ended, since dead index
entries in front of it cannot be removed while any old snapshot is open, and every claim would step over all of them.
Nothing here is needed to be right: a forgotten memory costs a walk, a wrong one a few seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from .limits import Hold
from .outcomes import ClaimedJob

FIRST_RANK, LAST_RANK = -100, 100
"""Ranks are minus priorities: the most urgent comes first."""

FIRST_ID = UUID(int=0)

SLACK = timedelta(seconds=2)
"""How long after its stamp a row may be committed and still be found at once. A mark never lies within this time."""

Mark = tuple[datetime, UUID]
"""Where a claim may start: at this readiness and, among jobs of one stamp, at this id."""


class Segment(NamedTuple):
    """A stretch of a lane's ready index: from (first_rank, after, after_id), or its start where None, to last_rank."""

    first_rank: int
    after: datetime | None
    last_rank: int
    after_id: UUID = FIRST_ID


class LaneTurn(NamedTuple):
    """One lane in one claim: the tenant, and the stretches to look at, in order."""

    tenant: str
    segments: tuple[Segment, ...] = (Segment(FIRST_RANK, None, LAST_RANK),)


@dataclass(slots=True)
class _Lane:
    marks: dict[int, Mark] = field(default_factory=dict)

    def segments(self) -> tuple[Segment, ...]:
        """Cut the ranks so that each marked one begins at its mark and those around it at their start."""
        starts: list[tuple[int, datetime | None, UUID]] = [(rank, *self.marks[rank]) for rank in sorted(self.marks)]
        if not starts or starts[0][0] > FIRST_RANK:
            starts.insert(0, (FIRST_RANK, None, FIRST_ID))
        ends = [rank - 1 for rank, _, _ in starts[1:]] + [LAST_RANK]
        return tuple(Segment(rank, after, end, pk) for (rank, after, pk), end in zip(starts, ends, strict=True))

    def mark(self, job: ClaimedJob, horizon: datetime | None) -> None:
        """Remember where ``job`` was, or the horizon behind which rows may still be committed, if that is earlier."""
        if horizon is None:
            mark = (job.ready_at - SLACK, FIRST_ID)
        else:
            mark = (job.ready_at, job.id) if job.ready_at <= horizon else (horizon, FIRST_ID)
        rank = -job.priority
        self.marks[rank] = max(mark, self.marks.get(rank, mark))


class Rotation:
    """The lanes of one queue, in the order of their turns. Not thread-safe: one dispatcher owns it."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, _Lane] = OrderedDict()
        self.hold: Hold | None = None
        """Why the last claim was left with nothing, although there may be work."""

    def __len__(self) -> int:
        return len(self._lanes)

    def __contains__(self, tenant: str) -> bool:
        return tenant in self._lanes

    def learn(self, tenants: Iterable[str]) -> None:
        """Add lanes that have work, behind those that are known already."""
        for tenant in tenants:
            if tenant not in self._lanes:
                self._lanes[tenant] = _Lane()

    def turn(self, count: int, without: Collection[str] = ()) -> list[LaneTurn]:
        """Return the next ``count`` lanes, whose turn it is longest first, passing over those ``without`` a turn."""
        lanes: Iterable[tuple[str, _Lane]] = self._lanes.items()
        if without:
            lanes = (lane for lane in lanes if lane[0] not in without)
        return [LaneTurn(tenant, lane.segments()) for tenant, lane in islice(lanes, count)]

    def settle(
        self, asked: Sequence[LaneTurn], jobs: Collection[ClaimedJob], *, full: bool, at: datetime | None = None
    ) -> None:
        """
        Learn from a claim's jobs, in order: lanes that were served go to the end, empty ones are dropped.

        ``full`` says that the claim stopped at its limit, so that lanes behind the last one served were not looked at.
        ``at`` is the database's time of the claim; without it each job's own stamp must do, and a batch that was
        enqueued at one moment is passed over again and again.
        """
        # They come in their order, so that the last of each level is where its mark goes.
        ends = {(job.tenant, job.priority): job for job in jobs}
        served = {tenant for tenant, _ in ends}
        last = max((place for place, lane in enumerate(asked) if lane.tenant in served), default=-1)
        for job in ends.values():
            if lane := self._lanes.get(job.tenant):
                lane.mark(job, None if at is None else at - SLACK)
        for place, turn in enumerate(asked):
            if turn.tenant in served:
                self._lanes.move_to_end(turn.tenant)
            elif not full or place < last:
                self._lanes.pop(turn.tenant, None)

    def forget_marks(self, tenants: Iterable[str] | None = None) -> None:
        """Forget the marks of these lanes, or of all: work may have come back, or been committed, before them."""
        for tenant in self._lanes if tenants is None else tenants:
            if lane := self._lanes.get(tenant):
                lane.marks.clear()
