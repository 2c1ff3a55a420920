"""Run now and move: what people change of jobs that wait, and of no others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ...domain.ids import new_id
from ...domain.outcomes import Retry
from ...domain.states import JobState
from ...exceptions import DuplicateJobError
from ...models import Job
from .base import OTHER_QUEUE, QUEUE, ConformanceBase

LATER = timedelta(hours=1)


class MovingConformance(ConformanceBase):
    """Guarantees of ``run_now`` and ``move``."""

    # -- run now -------------------------------------------------------------------------------------------------

    def test_scheduled_job_is_made_due_at_once(self) -> None:
        """As if its time had come at that moment."""
        job = self._scheduled(tenant="acme")

        moved = self.store.run_now(job.pk)

        assert moved is not None
        assert (moved.state, moved.tenant) == (JobState.READY, "acme")
        assert self.claim_one().id == job.pk

    def test_wait_for_the_next_try_can_be_cut_short(self) -> None:
        """The attempts that were made stay counted, and the failures stay on record."""
        job = self.enqueue()
        self.fail_job(self.claim_one(), Retry(LATER))

        self.store.run_now(job.pk)

        assert self.claim_one().attempts == 2
        assert len(self.failures(job.pk)) == 1

    def test_job_with_a_concurrency_key_still_waits_for_its_slot(self) -> None:
        """Haste is no way past a limit."""
        job = self._scheduled(concurrency_key="printer", concurrency_limit=1)

        self.store.run_now(job.pk)

        assert self.live(job.pk).state == JobState.BLOCKED
        assert self.claim() == []
        self.store.admit([(QUEUE, "", "printer")])
        assert self.claim_one().id == job.pk

    def test_only_scheduled_jobs_of_the_tenant_are_made_due(self) -> None:
        """What is ready, runs, is over, or belongs to another is left as it is."""
        scheduled, ready, held = self._scheduled(tenant="acme"), self.enqueue(), self.enqueue(queue=OTHER_QUEUE)
        self.claim_one(queue=OTHER_QUEUE)

        assert self.store.run_now(scheduled.pk, tenant="zeta") is None
        for job_id in (ready.pk, held.pk, new_id()):
            assert self.store.run_now(job_id) is None

        assert self.live(scheduled.pk).state == JobState.SCHEDULED
        assert self.live(ready.pk).ready_at == ready.ready_at
        assert self.live(held.pk).state == JobState.LEASED

    # -- move ----------------------------------------------------------------------------------------------------

    def test_waiting_job_moves_and_keeps_the_rest(self) -> None:
        """Whatever it waits for; the answer says how it was."""
        for state in (JobState.READY, JobState.SCHEDULED, JobState.PARKED):
            job = self.enqueue(state=state, tenant="acme", args="[1]", ready_at=self.store.now() + LATER)

            was = self.store.move(job.pk, queue=OTHER_QUEUE, priority=7)

            assert was is not None
            assert (was.queue, was.priority) == (QUEUE, 0)
            moved = self.live(job.pk)
            assert (moved.queue, moved.priority, moved.state) == (OTHER_QUEUE, 7, state)
            assert (moved.tenant, moved.args, moved.ready_at) == ("acme", "[1]", job.ready_at)

    def test_priority_that_was_raised_counts_at_the_next_claim(self) -> None:
        """Among the jobs of its tenant."""
        _, second = self.enqueue_many(2)

        self.store.move(second.pk, priority=50)

        assert self.claim_one().id == second.pk

    def test_job_that_a_worker_holds_does_not_move(self) -> None:
        """Its lease, its slot and its settlement stand where it was claimed."""
        job = self.enqueue()
        claimed = self.claim_one()

        assert self.store.move(job.pk, queue=OTHER_QUEUE, priority=7) is None

        assert (self.live(job.pk).queue, self.live(job.pk).priority) == (QUEUE, 0)
        assert self.complete(claimed)

    def test_only_live_jobs_of_the_tenant_move(self) -> None:
        """Nobody reaches another's job, nor one that is over."""
        job, over = self.enqueue(tenant="acme"), self.enqueue(tenant="zeta")
        self.bury(self.claim_one(tenants=["zeta"]))

        assert self.store.move(job.pk, priority=7, tenant="zeta") is None
        assert self.store.move(over.pk, priority=7) is None
        assert self.store.move(new_id(), priority=7) is None
        assert self.live(job.pk).priority == 0

    def test_job_does_not_move_beside_its_dedupe_key(self) -> None:
        """There is at most one live job of a key in a queue; the error names it."""
        job = self.enqueue(dedupe_key="order-1")
        holder = self.enqueue(dedupe_key="order-1", queue=OTHER_QUEUE)

        with self.assertRaises(DuplicateJobError) as refused:
            self.store.move(job.pk, queue=OTHER_QUEUE)

        assert refused.exception.holder_id == holder.pk
        assert self.live(job.pk).queue == QUEUE

    def test_dedupe_key_goes_along_until_its_time_is_over(self) -> None:
        """In the queue that the job has left the key is free."""
        kept, expired = (
            self.enqueue(dedupe_key=key, dedupe_expires_at=self.store.now() + timedelta(seconds=seconds))
            for key, seconds in (("a", 3600), ("b", 5))
        )
        self.advance(10)

        for job in (kept, expired):
            self.store.move(job.pk, queue=OTHER_QUEUE)

        assert (self.live(kept.pk).dedupe_key, self.live(expired.pk).dedupe_key) == ("a", None)
        assert not self.insert(dedupe_key="a").duplicate
        assert self.insert(dedupe_key="a", queue=OTHER_QUEUE).duplicate

    def test_admitted_job_waits_for_a_slot_in_the_other_queue(self) -> None:
        """Slots are counted for each queue: it frees one there, and takes none here unasked."""
        keyed: dict[str, Any] = {"concurrency_key": "printer", "concurrency_limit": 1}
        job = self.enqueue(**keyed)
        self.enqueue(queue=OTHER_QUEUE, **keyed)

        self.store.move(job.pk, queue=OTHER_QUEUE)
        self.store.admit([(OTHER_QUEUE, "", "printer")])

        assert self.live(job.pk).state == JobState.BLOCKED
        assert self.store.move(job.pk, priority=3) is not None
        assert self.live(job.pk).state == JobState.BLOCKED

    def test_admitted_job_keeps_its_slot_when_its_priority_changes(self) -> None:
        """It does not leave its queue."""
        job = self.enqueue(concurrency_key="printer", concurrency_limit=1)

        self.store.move(job.pk, queue=QUEUE, priority=3)

        assert self.live(job.pk).state == JobState.READY

    # -- steps ---------------------------------------------------------------------------------------------------

    def _scheduled(self, **columns: Any) -> Job:
        return self.enqueue(state=JobState.SCHEDULED, ready_at=self.store.now() + LATER, **columns)
