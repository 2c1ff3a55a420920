"""Reap and adopt: what becomes of the work of those who never came back."""

from __future__ import annotations

from datetime import timedelta

from ...domain.outcomes import ClaimedJob
from ...domain.states import DeathReason, FailureKind, JobState
from ...lifecycle.reap import judge
from ...models import Lease
from .base import QUEUE, ConformanceBase


class ReapingConformance(ConformanceBase):
    """Guarantees of ``reap`` and ``adopt`` under the queue's own policy."""

    # -- lapsed leases -------------------------------------------------------------------------------------------

    def test_lapsed_job_comes_back_with_its_attempt_counted(self) -> None:
        """At once the first time: most often it was a deploy or a lost host."""
        job = self.enqueue()
        claimed = self.claim_one(lease=1)
        self.advance(2)

        [reclaimed] = self.reap()

        assert (reclaimed.job_id, reclaimed.attempts, reclaimed.worker) == (job.pk, 1, "worker-1")
        assert (reclaimed.kind, reclaimed.died, reclaimed.queue) == (FailureKind.LAPSED, None, QUEUE)
        again = self.claim_one("worker-2")
        assert (again.id, again.attempts) == (job.pk, 2)
        assert again.lease_id != claimed.lease_id

    def test_lapse_is_recorded_as_a_failure(self) -> None:
        """A person must be able to read that a worker was lost, and which."""
        job = self.enqueue()
        claimed = self.claim_one("worker-7")

        self.lapse(claimed)

        [failure] = self.failures(job.pk)
        assert (failure.kind, failure.attempt, failure.lease_id) == (FailureKind.LAPSED, 1, claimed.lease_id)
        assert "worker-7" in failure.message
        assert "lapsed" in self.claim_one().last_error

    def test_held_work_is_not_reaped(self) -> None:
        """A worker has the whole length of its lease."""
        self.enqueue()
        self.claim_one(lease=30)
        self.advance(29)

        assert self.reap() == []

    def test_second_lapse_in_a_row_backs_off(self) -> None:
        """A job that kills its workers must not run through the fleet."""
        job = self.enqueue(max_attempts=9)
        self.lapse(self.claim_one())

        self.lapse(self.claim_one())

        assert self.live(job.pk).state == JobState.SCHEDULED
        assert self.live(job.pk).ready_at > self.store.now()

    def test_lapse_of_the_last_attempt_makes_a_dead_letter(self) -> None:
        """With the failure that says why."""
        job = self.enqueue(max_attempts=1)

        [reclaimed] = self.lapse(self.claim_one())

        assert reclaimed.died == DeathReason.EXHAUSTED
        assert self.places(job.pk) == ["dead"]
        assert [failure.kind for failure in self.dead(job.pk).failures] == [FailureKind.LAPSED]

    def test_shared_lapse_buries_nobody(self) -> None:
        """Only one of them can have killed the worker, and nobody knows which."""
        jobs = self.enqueue_many(3, max_attempts=1)
        first, *_ = self.claim()

        self.lapse(first)

        assert [self.places(job.pk) for job in jobs] == [["live"]] * 3

    def test_culprit_of_a_shared_lapse_dies_alone(self) -> None:
        """Claimed alone from then on, it pays when it kills again, and its neighbours end well."""
        victim, culprit = self.enqueue_many(2, max_attempts=1)
        self.lapse(self.claim()[0])

        for _ in range(2):
            [claimed] = self.claim()
            if claimed.id == culprit.pk:
                self.lapse(claimed)
            else:
                self.complete(claimed)

        assert self.places(victim.pk) == ["finished"]
        assert self.places(culprit.pk) == ["dead"]

    def test_job_settled_before_the_lapse_is_not_touched(self) -> None:
        """A lease that lapses takes along only what is still under it."""
        self.enqueue_many(2)
        done, left = self.claim()
        self.complete(done, last=False)

        assert [each.job_id for each in self.lapse(left)] == [left.id]
        assert self.places(done.id) == ["finished"]

    def test_capped_job_says_so(self) -> None:
        """A job that ran for too long is another matter than a lost worker."""
        job = self.enqueue()
        claimed = self.claim_one(lease=30, max_lease=40)
        self.advance(25)
        self.renew(claimed)

        self.lapse(claimed)

        [failure] = self.failures(job.pk)
        assert failure.kind == FailureKind.CAPPED
        assert "40 s" in failure.message

    def test_reap_is_bounded_and_goes_on(self) -> None:
        """The death of a whole fleet must not become one transaction; the next round takes the rest."""
        self.enqueue_many(5)
        claims = [self.claim_one() for _ in range(5)]
        self.advance(31)

        counts = [len(self.reap(limit=2)) for _ in range(4)]

        assert counts == [2, 2, 1, 0]
        assert {self.live(job.id).state for job in claims} == {JobState.READY}

    def test_reaped_lease_is_gone(self) -> None:
        """The table of leases stays as small as the fleet, also where no job is left under a lapsed one."""
        self.enqueue()
        claimed = self.claim_one()
        self.complete(claimed, last=False)

        assert self.lapse(claimed) == []

        assert not Lease.objects.using(self.store.alias).exists()

    # -- adoption ------------------------------------------------------------------------------------------------

    def test_restarted_worker_gives_back_what_it_held(self) -> None:
        """At once, without waiting for the lease to lapse or for a backoff; another worker may have it."""
        job = self.enqueue()
        self.claim_one("worker-1")

        [adopted] = self.store.adopt(["worker-1"], judge)

        assert (adopted.job_id, adopted.kind, adopted.died) == (job.pk, FailureKind.ADOPTED, None)
        again = self.claim_one("worker-2")
        assert (again.id, again.attempts) == (job.pk, 2)

    def test_adoption_is_recorded_as_a_failure(self) -> None:
        """A person must be able to read that the worker restarted."""
        job = self.enqueue()
        self.claim_one("worker-7")

        self.store.adopt(["worker-7"], judge)

        [failure] = self.failures(job.pk)
        assert failure.kind == FailureKind.ADOPTED
        assert "worker-7 restarted" in failure.message

    def test_adoption_waits_out_no_backoff(self) -> None:
        """Not even after many of them: it is known why the worker stopped."""
        self.enqueue(max_attempts=9)

        for attempt in range(1, 5):
            assert self.claim_one("worker-1").attempts == attempt
            self.store.adopt(["worker-1"], judge)

        assert self.claim_one().attempts == 5

    def test_adoption_leaves_other_workers_alone(self) -> None:
        """It takes back what was held by the names that it was given."""
        self.enqueue_many(3)
        self.claim_one("worker-1")
        other, namesake = self.claim_one("worker-2"), self.claim_one("worker-11")

        self.store.adopt(["worker-1"], judge)

        assert self.renew(other)
        assert self.renew(namesake)

    def test_adoption_of_nothing_is_no_error(self) -> None:
        """A worker that held nothing, or that nobody knows."""
        assert self.store.adopt(["worker-1"], judge) == []

    def test_lapses_are_forgotten_by_no_release(self) -> None:
        """A suspect that was given back unstarted is a suspect still."""
        job = self.enqueue()
        self.lapse(self.claim_one())

        self.release(self.claim_one())

        assert self.live(job.pk).lapses == 1
        assert self._claimed_again().attempts == 2

    def test_work_comes_back_to_the_lane_that_it_was_in(self) -> None:
        """Queue, tenant, priority, key and due time are the job's own, whoever held it."""
        job = self.enqueue(tenant="acme", priority=7, dedupe_key="order-1")
        ready_at = self.live(job.pk).ready_at
        claimed = self.claim_one()

        self.lapse(claimed)

        stored = self.live(job.pk)
        assert (stored.queue, stored.tenant, stored.priority, stored.dedupe_key) == (QUEUE, "acme", 7, "order-1")
        assert timedelta(0) < ready_at - stored.ready_at < timedelta(minutes=1)

    def _claimed_again(self) -> ClaimedJob:
        return self.claim_one("worker-2")
