"""Pauses: rows that every worker sees, and jobs that are set aside while their task is paused."""

from __future__ import annotations

from django.test import override_settings

from ...domain.pauses import Pauses
from ...domain.states import JobState, PauseKind
from ...models import Job
from .base import QUEUE, ConformanceBase

TASK = "conformance.tasks.work"


class PausingConformance(ConformanceBase):
    """Guarantees of pauses."""

    def test_pause_is_seen_and_ends(self) -> None:
        """By kind and name; pausing twice and resuming twice are no errors, and say that nothing changed."""
        for kind in PauseKind:
            assert [self.store.pause(kind, "mail", "olga") for _ in range(2)] == [True, False]
        assert self.store.pauses() == Pauses(frozenset({"mail"}), frozenset({"mail"}), frozenset({"mail"}))

        assert [self.store.resume(PauseKind.TASK, "mail") for _ in range(2)] == [True, False]
        assert self.store.pauses() == Pauses(frozenset({"mail"}), frozenset({"mail"}), frozenset())

    def test_pause_of_a_renamed_task_is_one_of_all_its_names(self) -> None:
        """Jobs of the time before are stored under the former path."""
        with override_settings(WORKQUEUE={"ALIASES": {"old.path": "new.path"}}):
            for name in ("new.path", "old.path"):
                self.store.pause(PauseKind.TASK, name, "olga")
                assert self.store.pauses().tasks == {"old.path", "new.path"}
                self.store.resume(PauseKind.TASK, name)

    def test_pause_loses_no_job(self) -> None:
        """What waits goes on waiting, what runs is settled, and new work is accepted."""
        self.enqueue()
        running = self.claim_one()
        self.store.pause(PauseKind.QUEUE, QUEUE, "olga")

        assert not self.insert().duplicate
        assert self.complete(running)
        assert self.store.lanes(QUEUE) == [""]

    def test_parked_job_was_never_begun(self) -> None:
        """It counts no attempt, is no worker's any more, and no claim finds it."""
        job = self.enqueue()
        claimed = self.claim_one()

        assert self.store.park(claimed.lease_id, [claimed.id], last=True).ids == {job.pk}

        parked = self.live(job.pk)
        assert (parked.state, parked.attempts, parked.lease_id) == (JobState.PARKED, 0, None)
        assert self.claim() == []
        assert not self.complete(claimed)

    def test_only_a_job_that_is_held_can_be_parked(self) -> None:
        """Whoever lost the lease has no say any more."""
        self.enqueue()
        lost = self.claim_one()
        self.lapse(lost)

        assert self.store.park(lost.lease_id, [lost.id], last=True).ids == set()
        assert self.live(lost.id).state != JobState.PARKED

    def test_parked_jobs_are_let_go_by_task_and_in_batches(self) -> None:
        """Each comes back once, those of other tasks stay."""
        self.enqueue_many(3)
        other = self.enqueue(task="conformance.tasks.other", tenant="acme")
        for claimed in self.claim():
            self.store.park(claimed.lease_id, [claimed.id], last=False)
        assert self.store.parked_tasks() == ["conformance.tasks.other", TASK]

        counts = [self.store.unpark([TASK], limit=2).number for _ in range(3)]

        assert counts == [2, 1, 0]
        assert self.store.parked_tasks() == ["conformance.tasks.other"]
        assert Job.objects.using(self.store.alias).ready().count() == 3
        assert self.store.unpark([other.task]).lanes == {(QUEUE, "acme")}

    def test_parked_job_with_a_concurrency_key_waits_for_a_slot(self) -> None:
        """Ready at once, it would be one more than the limit says."""
        job = self.enqueue(concurrency_key="k", concurrency_limit=1)
        claimed = self.claim_one()
        self.store.park(claimed.lease_id, [claimed.id], last=True)

        unparked = self.store.unpark([TASK])

        assert (unparked.lanes, unparked.keys) == (set(), {(QUEUE, "", "k")})
        assert self.live(job.pk).state == JobState.BLOCKED
