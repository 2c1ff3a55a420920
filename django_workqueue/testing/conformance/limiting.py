"""Limits by concurrency key: no more than so many of a key at once, none forgotten, nobody else held up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ...domain.limits import Window
from ...domain.outcomes import Retry
from ...domain.states import JobState, PauseKind
from ...models import Job
from .base import OTHER_QUEUE, QUEUE, ConformanceBase

KEY = (QUEUE, "", "printer")


class LimitingConformance(ConformanceBase):
    """Guarantees of admission, of what claims within a queue's limits stand on, and of depth."""

    def test_no_more_are_admitted_than_the_limit(self) -> None:
        """However often it is asked for, and whether they wait or run."""
        self._block(5, limit=2)

        assert self.store.admit([KEY]) == {(QUEUE, "")}
        assert self.store.admit([KEY]) == set()
        assert len(self.claim()) == 2
        assert self.store.admit([KEY]) == set()
        assert self._states() == {"blocked": 3, "leased": 2}

    def test_each_end_of_a_job_admits_one_more(self) -> None:
        """Success, burial and a delayed retry give the slot up."""
        self._block(4, limit=1)
        self.store.admit([KEY])
        endings = (self.complete, self.bury, lambda job: self.fail_job(job, Retry(timedelta(hours=1))))

        for end in endings:
            assert end(self.claim_one())
            assert self.store.admit([KEY]) == {(QUEUE, "")}
        assert self._states() == {"ready": 1, "scheduled": 1}

    def test_job_that_comes_back_at_once_keeps_its_slot(self) -> None:
        """Were the slot given to another, both might run."""
        self._block(2, limit=1)
        self.store.admit([KEY])
        claimed = self.claim_one()
        self.store.release(claimed.lease_id, [claimed.id], last=True)
        assert self.store.admit([KEY]) == set()

        again = self.claim_one()
        self.fail_job(again)
        assert self.store.admit([KEY]) == set()
        assert self.claim_one().id == claimed.id == again.id

    def test_order_of_admission_is_that_of_claims(self) -> None:
        """By priority, then by readiness, then by id."""
        first, second = self._block(2, limit=1)
        [early] = self._block(1, limit=1, ready_at=self.store.now() - timedelta(hours=1))
        [urgent] = self._block(1, limit=1, priority=5)

        for expected in (urgent, early, first, second):
            self.store.admit([KEY])
            claimed = self.claim_one()
            assert claimed.id == expected.pk
            self.complete(claimed)

    def test_keys_queues_and_tenants_are_apart(self) -> None:
        """A key is one of its queue and tenant, and jobs without a key are nobody's."""
        for queue, tenant in ((QUEUE, ""), (QUEUE, "acme"), (OTHER_QUEUE, "")):
            self._block(2, limit=1, queue=queue, tenant=tenant)
        self.enqueue()

        lanes = self.store.admit([KEY, (QUEUE, "acme", "printer"), (OTHER_QUEUE, "", "printer"), (QUEUE, "", "none")])

        assert lanes == {(QUEUE, ""), (QUEUE, "acme"), (OTHER_QUEUE, "")}
        assert self._states() == {"blocked": 3, "ready": 4}

    def test_limit_that_was_lowered_holds_for_those_that_carry_it(self) -> None:
        """Of jobs that disagree, as those of two deploys do, each waits for its own limit."""
        self._block(2, limit=3)
        self.store.admit([KEY])
        self._block(1, limit=1)
        self.store.admit([KEY])
        assert self._states() == {"blocked": 1, "ready": 2}

        for claimed in self.claim():
            assert self._states()["blocked"] == 1
            self.complete(claimed, last=False)
            self.store.admit([KEY])
        assert self._states() == {"ready": 1}

    def test_jobs_of_a_paused_task_are_passed_over(self) -> None:
        """They would take the slot, be claimed and parked, again and again."""
        self._block(1, limit=1)
        other = self._block(1, limit=1, task="conformance.tasks.other")
        self.store.pause(PauseKind.TASK, "conformance.tasks.work", "olga")

        self.store.admit([KEY])

        assert self.claim_one().id == other[0].pk

    def test_due_job_with_a_key_waits_for_its_slot(self) -> None:
        """Promotion makes it ready only as far as there is room."""
        for _ in range(2):
            self.enqueue(
                concurrency_key="printer",
                concurrency_limit=1,
                state=JobState.SCHEDULED,
                ready_at=self.store.now() + timedelta(seconds=5),
            )
        self.advance(6)

        self.store.promote()

        assert self._states() == {"blocked": 1, "ready": 1}

    def test_requeued_dead_letter_waits_for_its_slot(self) -> None:
        """A person's decision is no way around the limit."""
        self._block(1, limit=1)
        self.store.admit([KEY])
        dead = self.claim_one()
        self.bury(dead)

        self.store.requeue(dead.id, attempts=1)

        assert self.live(dead.id).state == JobState.BLOCKED
        assert self.live(dead.id).concurrency_limit == 1

    def test_blocked_keys_tell_where_there_is_room(self) -> None:
        """In order and bounded: the sweep goes on behind the last one."""
        self._block(1, limit=1, tenant="acme")
        self._block(2, limit=1, tenant="beta")
        self.store.admit([(QUEUE, "beta", "printer")])
        self._block(1, limit=1, queue=OTHER_QUEUE)

        found = self.store.blocked_keys(limit=2)
        rest = self.store.blocked_keys(after=found[-1].key)

        assert [(*blocked.key, blocked.has_room) for blocked in [*found, *rest]] == [
            (QUEUE, "acme", "printer", True),
            (QUEUE, "beta", "printer", False),
            (OTHER_QUEUE, "", "printer", True),
        ]

    def test_withheld_jobs_are_seen(self) -> None:
        """Blocked or parked; one look, so that a queue without limits costs no more."""
        self.enqueue()
        assert not self.store.has_withheld()

        self._block(1, limit=1)
        assert self.store.has_withheld()
        assert self.store.outlook().withheld
        self.store.admit([KEY])
        assert not self.store.has_withheld()
        for claimed in self.claim(limit=1):
            self.store.park(claimed.lease_id, [claimed.id], last=True)
        assert self.store.has_withheld()
        assert self.store.outlook().withheld

    def test_leased_jobs_are_counted_by_tenant(self) -> None:
        """All workers' together, and of this queue alone; a lapsed lease counts until it is reaped."""
        for tenant in ("acme", "acme", "beta"):
            self.enqueue(tenant=tenant)
        self.enqueue(queue=OTHER_QUEUE)
        self.claim("worker-1", tenants=["acme"], lease=5)
        self.claim("worker-2")
        self.claim(queue=OTHER_QUEUE)
        self.advance(6)

        assert self.store.leased_tenants(QUEUE) == {"acme": 2, "beta": 1}

    def test_window_of_a_rate_is_remembered(self) -> None:
        """In the queue's row, which is made when it is first wanted."""
        with self.store.exclusive(QUEUE) as row:
            assert (row.window_started_at, row.window_taken) == (None, 0)
            now = self.store.now()
            self.store.write_window(QUEUE, Window(now, 3))
        with self.store.exclusive(QUEUE) as row:
            assert (row.window_started_at, row.window_taken) == (now, 3)

    def test_depth_is_what_might_run(self) -> None:
        """Ready and blocked jobs of one lane, up to a bound; not those that run or whose time has not come."""
        self.enqueue_many(3)
        self.claim_one()
        self._block(2, limit=1)
        self.enqueue(tenant="acme")
        self.enqueue(state=JobState.SCHEDULED, ready_at=self.store.now() + timedelta(hours=1))

        assert [self.store.depth(QUEUE, "", cap) for cap in (1, 3, 100)] == [1, 3, 4]

    # -- steps ---------------------------------------------------------------------------------------------------

    def _block(self, count: int, *, limit: int, **columns: Any) -> list[Job]:
        return self.enqueue_many(
            count, concurrency_key="printer", concurrency_limit=limit, state=JobState.BLOCKED, **columns
        )

    def _states(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for state in Job.objects.using(self.store.alias).values_list("state", flat=True):
            counts[state] = counts.get(state, 0) + 1
        return counts
