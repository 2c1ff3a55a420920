"""
The rotation against a simple model of the table, over any sequence of enqueues, claims and returns.

Three promises: a lane with work is not passed over twice by the same other lane; a mark hides nothing that was
committed within the slack of its stamp; and within a lane, jobs come in their order.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from django_workqueue.domain.ids import new_id
from django_workqueue.domain.outcomes import ClaimedJob
from django_workqueue.domain.rotation import SLACK, Rotation
from django_workqueue.lifecycle.claim import claim
from django_workqueue.store.claim import Claim

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BLANK = dict.fromkeys(ClaimedJob._fields)

tenants = st.sampled_from("abcdefgh")
priorities = st.sampled_from([-100, -1, 0, 1, 100])


def position(job: ClaimedJob) -> tuple:
    """Return where a job stands within its lane."""
    return -job.priority, job.ready_at, job.id


class Table:
    """The ready jobs, and the claim statement's meaning in a few lines."""

    def __init__(self) -> None:
        self.jobs: list[ClaimedJob] = []

    def lane(self, tenant: str) -> list[ClaimedJob]:
        """Return the jobs of a lane in their order."""
        return sorted((job for job in self.jobs if job.tenant == tenant), key=position)

    def claim(self, order) -> Claim:
        """Take jobs from the lanes in turn, behind their marks; a suspect comes alone."""
        found: list[ClaimedJob] = []
        for turn in order.lanes:
            seen = [job for job in self.lane(turn.tenant) if any(_within(job, segment) for segment in turn.segments)]
            found += seen[: min(order.quantum, order.limit - len(found))]
        suspects = [place for place, job in enumerate(found) if job.lapses]
        taken = found[: max(suspects[0], 1)] if suspects else found
        self.jobs = [job for job in self.jobs if job not in taken]
        return Claim(taken, cut=len(taken) < len(found))


def _within(job: ClaimedJob, segment) -> bool:
    rank, after = -job.priority, segment.after
    begins = rank > segment.first_rank or (rank == segment.first_rank and (after is None or job.ready_at >= after))
    return begins and rank <= segment.last_rank


class Turns(RuleBasedStateMachine):
    """One worker with one queue."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.rotation = Table(), Rotation()
        self.now = NOON
        self.passed: dict[str, set[str]] = defaultdict(set)

    @rule(tenant=tenants, priority=priorities, late=st.floats(0, SLACK.total_seconds()), count=st.integers(1, 6))
    def enqueue(self, tenant, priority, late, count):
        """Commit jobs a little after their stamp, and hear of their lane."""
        stamp = self.now - timedelta(seconds=late)
        for _ in range(count):
            self._add(tenant, priority=priority, ready_at=stamp)
        self.rotation.learn([tenant])

    @rule(tenant=tenants, priority=priorities, age=st.integers(0, 10_000), lapses=st.integers(0, 1))
    def come_back(self, tenant, priority, age, lapses):
        """Return a job from a lapsed lease or a schedule, at its old place."""
        self._add(tenant, priority=priority, ready_at=self.now - timedelta(seconds=age), lapses=lapses)
        self.rotation.learn([tenant])
        self.rotation.forget_marks([tenant])

    @rule(seconds=st.floats(0, 60))
    def let_time_pass(self, seconds):
        """Nothing else happens."""
        self.now += timedelta(seconds=seconds)

    @rule(limit=st.integers(1, 12))
    def claim_some(self, limit):
        """Claim, and hold what comes to the promises."""
        waiting = {tenant: self.table.lane(tenant) for tenant in "abcdefgh"}
        jobs = claim(self.table, self.rotation, queue="default", worker="w", limit=limit)

        served = list(dict.fromkeys(job.tenant for job in jobs))
        for tenant in served:
            mine = [job for job in jobs if job.tenant == tenant]
            assert mine == waiting[tenant][: len(mine)], "a job was passed over within its lane"
        self._note_turns(served, {tenant for tenant, lane in waiting.items() if lane})
        assert jobs or not self.table.jobs, "a claim came back empty though work was waiting"

    def _note_turns(self, served, had_work):
        for waiting in had_work - set(served):
            again = self.passed[waiting] & set(served)
            assert not again, f"{again} had a second turn before {waiting} had its first"
            self.passed[waiting] |= set(served)
        for tenant in {*served, *("abcdefgh")} - (had_work - set(served)):
            self.passed[tenant].clear()

    @invariant()
    def every_lane_with_work_is_known(self):
        """No lane is dropped while it has something."""
        for job in self.table.jobs:
            assert job.tenant in self.rotation

    def teardown(self):
        """Whatever is left can be drained by claims alone."""
        for _ in range(len(self.table.jobs)):
            self.claim_some(limit=1)
        assert not self.table.jobs

    def _add(self, tenant, **columns):
        self.table.jobs.append(ClaimedJob(**BLANK | {"id": new_id(), "tenant": tenant, "lapses": 0} | columns))


TestTurns = Turns.TestCase
TestTurns.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, database=None, derandomize=True)
