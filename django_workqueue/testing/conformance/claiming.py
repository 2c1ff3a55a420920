"""Claim: who gets which job, in which order, for how long."""

from __future__ import annotations

from datetime import timedelta

from ...domain.rotation import Rotation
from ...domain.states import JobState
from ...models import Job
from .base import OTHER_QUEUE, QUEUE, ConformanceBase


class ClaimingConformance(ConformanceBase):
    """Guarantees of ``lanes``, ``claim``, ``release``, ``promote`` and ``next_due``."""

    # -- one holder ----------------------------------------------------------------------------------------------

    def test_empty_queue_hands_out_nothing(self) -> None:
        """No work is no error, and no lease is opened over nothing."""
        assert self.store.ready_queues() == []
        assert self.store.lanes(QUEUE) == []
        assert self.claim(tenants=["acme"]) == []

    def test_claim_hands_out_the_job_under_a_lease_of_the_worker(self) -> None:
        """The claim carries all that is needed to run the job, its attempt counted, and the fence of every report."""
        job = self.enqueue(tenant="acme", args="[1]", kwargs='{"a":1}', priority=3, max_attempts=4)

        claimed = self.claim_one("worker-7")

        assert (claimed.id, claimed.queue, claimed.tenant, claimed.task) == (job.pk, QUEUE, "acme", job.task)
        assert (claimed.args, claimed.kwargs, claimed.priority) == ("[1]", '{"a":1}', 3)
        assert (claimed.attempts, claimed.max_attempts, claimed.last_error, claimed.lapses) == (1, 4, "", 0)
        assert self.lease_of(claimed).worker == "worker-7"
        assert (self.live(job.pk).state, self.live(job.pk).attempts) == (JobState.LEASED, 1)

    def test_claimed_job_is_not_handed_out_again(self) -> None:
        """One holder at a time."""
        self.enqueue()
        self.claim_one("worker-1")

        assert self.claim("worker-2", tenants=[""]) == []
        assert self.store.lanes(QUEUE) == []

    def test_ten_claims_take_ten_jobs(self) -> None:
        """No two claims meet in one job, and none comes back with nothing while there is work."""
        jobs = self.enqueue_many(10)

        claimed = [self.claim_one(f"worker-{number}").id for number in range(10)]

        assert sorted(claimed) == sorted(job.pk for job in jobs)

    def test_claim_takes_no_more_than_it_asked_for(self) -> None:
        """What a worker cannot start belongs to the others."""
        for tenant in ("acme", "zeta"):
            self.enqueue_many(5, tenant=tenant)

        claimed = self.claim(limit=4, quantum=3)

        assert [job.tenant for job in claimed] == ["acme"] * 3 + ["zeta"]
        assert len({job.lease_id for job in claimed}) == 1

    # -- order ---------------------------------------------------------------------------------------------------

    def test_first_in_is_first_out(self) -> None:
        """Also for jobs of one statement, which share their time."""
        jobs = [*self.enqueue_many(3), self.enqueue(), *self.enqueue_many(3)]

        claimed = self.claim(limit=4) + self.claim(limit=4)

        assert [job.id for job in claimed] == [job.pk for job in jobs]

    def test_longest_ready_comes_first(self) -> None:
        """Work that is carried over is as old as it says, whatever its id."""
        self.enqueue()
        carried_over = self.enqueue(ready_at=self.store.now() - timedelta(hours=1))

        assert self.claim_one().id == carried_over.pk

    def test_higher_priority_comes_first(self) -> None:
        """Priority orders a tenant's own jobs, over the whole range."""
        for priority in (0, -100, 100, 1, -1):
            self.enqueue(priority=priority)

        assert [job.priority for job in self.claim()] == [100, 1, 0, -1, -100]

    def test_priority_does_not_beat_another_tenants_turn(self) -> None:
        """Whoever declares all work urgent gets ahead of themselves only."""
        self.enqueue(tenant="modest", priority=-100)
        self.enqueue_many(5, tenant="urgent", priority=100)

        claimed = self.claim(tenants=["modest", "urgent"], limit=2)

        assert [job.tenant for job in claimed] == ["modest", "urgent"]

    def test_quiet_tenant_is_served_beside_a_loud_one(self) -> None:
        """However much one tenant enqueues, another waits for one turn only."""
        self.enqueue_many(40, tenant="loud")
        self.enqueue(tenant="quiet")
        rotation = Rotation()

        served = [job.tenant for _ in range(2) for job in self.take_turn(rotation)]

        assert sorted(served) == ["loud", "quiet"]

    def test_turns_go_round_among_all_tenants(self) -> None:
        """Nobody is served twice before everybody was served once."""
        tenants = [f"tenant-{number}" for number in range(7)]
        for tenant in tenants:
            self.enqueue_many(3, tenant=tenant)
        rotation = Rotation()

        served = [job.tenant for _ in range(21) for job in self.take_turn(rotation)]

        for start in (0, 7, 14):
            assert sorted(served[start : start + 7]) == tenants

    def test_two_queues_in_turn_starve_no_tenant(self) -> None:
        """Turns are kept for each queue by itself: a turn shared by both would pass one tenant by for ever."""
        for queue in (QUEUE, OTHER_QUEUE):
            for tenant in ("acme", "zeta"):
                self.enqueue_many(5, tenant=tenant, queue=queue)
        rotations = {QUEUE: Rotation(), OTHER_QUEUE: Rotation()}

        served = [
            (queue, job.tenant)
            for _ in range(2)
            for queue, rotation in rotations.items()
            for job in self.take_turn(rotation, queue=queue)
        ]

        assert sorted(served) == [(queue, tenant) for queue in (QUEUE, OTHER_QUEUE) for tenant in ("acme", "zeta")]

    def test_claim_of_one_queue_leaves_the_others_alone(self) -> None:
        """Workers are started for queues, and a queue that nobody serves must keep its jobs."""
        self.enqueue(queue=OTHER_QUEUE)
        job = self.enqueue()

        assert [claimed.id for claimed in self.claim()] == [job.pk]
        assert self.store.ready_queues() == [OTHER_QUEUE]

    def test_claim_of_one_lane_leaves_the_others_alone(self) -> None:
        """A lane is asked for by the tenant's whole name."""
        self.enqueue(tenant="acme-2")
        job = self.enqueue(tenant="acme")

        assert [claimed.id for claimed in self.claim(tenants=["acme"])] == [job.pk]

    def test_lanes_are_listed_in_parts(self) -> None:
        """With very many tenants a walk goes on where the last one ended."""
        for tenant in ("", "b", "a", "c", "a"):
            self.enqueue(tenant=tenant)

        assert self.store.lanes(QUEUE) == ["", "a", "b", "c"]
        assert self.store.lanes(QUEUE, limit=2) == ["", "a"]
        assert self.store.lanes(QUEUE, after="a", limit=2) == ["b", "c"]

    # -- leases --------------------------------------------------------------------------------------------------

    def test_lease_ends_after_the_length_that_the_claim_asked_for(self) -> None:
        """Longer or shorter, each claim may ask for its own."""
        self.enqueue_many(2)

        for seconds in (5, 600):
            lease = self.lease_of(self.claim_one(lease=seconds))
            assert lease.expires_at - lease.acquired_at == timedelta(seconds=seconds)
            assert lease.deadline_at - lease.acquired_at == timedelta(hours=1)

    def test_lease_is_never_longer_than_its_cap(self) -> None:
        """The longest time that an attempt may take holds from the first second."""
        self.enqueue()

        lease = self.lease_of(self.claim_one(lease=30, max_lease=10))

        assert lease.expires_at == lease.deadline_at == lease.acquired_at + timedelta(seconds=10)

    def test_suspect_is_claimed_alone(self) -> None:
        """A job whose last lease lapsed may have killed its worker, and shares no lease with others again."""
        self.enqueue()
        self.lapse(self.claim_one())
        self.enqueue_many(3)

        assert [job.lapses for job in self.claim()] == [1]
        assert [job.lapses for job in self.claim()] == [0, 0, 0]

    def test_claim_stops_before_a_suspect(self) -> None:
        """Those in front of a suspect are not held up, and do not share its lease either."""
        self.enqueue(tenant="b")
        self.lapse(self.claim_one())
        self.enqueue_many(2, tenant="a")

        assert [job.tenant for job in self.claim()] == ["a", "a"]
        assert [(job.tenant, job.lapses) for job in self.claim()] == [("b", 1)]

    # -- giving back ---------------------------------------------------------------------------------------------

    def test_released_job_is_as_before_its_claim(self) -> None:
        """What was not started costs no attempt and leaves no failure, and another worker may have it at once."""
        job = self.enqueue()

        assert self.release(self.claim_one())

        assert (self.live(job.pk).state, self.live(job.pk).attempts) == (JobState.READY, 0)
        assert self.failures(job.pk) == []
        assert self.claim_one("worker-2").attempts == 1

    def test_part_of_a_lease_is_released(self) -> None:
        """The rest of the batch stays held."""
        self.enqueue_many(2)
        first, second = self.claim()

        assert self.release(first, last=False)

        assert self.renew(second)
        assert self.complete(second)
        assert self.places(first.id) == ["live"]

    def test_claims_whose_answer_was_lost_are_given_back(self) -> None:
        """A worker that never heard of a claim that it made will not run it; the leases it knows are left alone."""
        self.enqueue_many(3)
        known, unknown, others = self.claim_one("worker-1"), self.claim_one("worker-1"), self.claim_one("worker-2")

        assert len(self.store.release_unknown("worker-1", [known.lease_id]).ids) == 1

        assert self.live(unknown.id).state == JobState.READY
        assert self.live(unknown.id).attempts == 0
        assert self.renew(known)
        assert self.renew(others)

    # -- due times -----------------------------------------------------------------------------------------------

    def test_deferred_job_waits_for_its_time(self) -> None:
        """Not a second early; and then it is ready since its due time, not since somebody looked."""
        job = self._defer(60)

        self.advance(59)
        assert self.store.promote() == set()
        assert self.claim() == []

        self.advance(1)
        due = self.live(job.pk).ready_at
        assert self.store.promote() == {(QUEUE, "acme")}
        assert self.claim_one().ready_at == due

    def test_outlook_tells_of_due_and_withheld_jobs_and_lapsed_leases(self) -> None:
        """One look for all, as an idle worker asks often."""
        assert self.store.outlook() == (None, False, False)

        self.enqueue()
        self.claim_one(lease=30)
        self._defer(600)
        due, lapsed, withheld = self.store.outlook()
        assert due is not None
        assert timedelta(seconds=590) < due <= timedelta(seconds=600)
        assert not lapsed
        assert not withheld

        self.advance(31)
        assert self.store.outlook().lapsed

    def test_next_due_time_is_told(self) -> None:
        """A worker that knows it starts the job on time, and not at the next poll."""
        assert self.store.next_due() is None
        self._defer(600)
        self._defer(60)

        due = self.store.next_due()

        assert due is not None
        assert timedelta(seconds=50) < due <= timedelta(seconds=60)

    def test_promotion_is_bounded(self) -> None:
        """A million jobs due at midnight must not become one transaction."""
        for _ in range(3):
            self._defer(60)
        self.advance(61)

        self.store.promote(limit=2)
        assert len(self.claim()) == 2
        self.store.promote(limit=2)
        assert len(self.claim()) == 1

    def _defer(self, seconds: float) -> Job:
        due = self.store.now() + timedelta(seconds=seconds)
        return self.enqueue(tenant="acme", state=JobState.SCHEDULED, ready_at=due)
