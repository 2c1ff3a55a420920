"""Settle: what each ending of an attempt leaves behind."""

from __future__ import annotations

from datetime import datetime, timedelta

from ...domain.ids import new_id
from ...domain.outcomes import Bury, ClaimedJob, Retry
from ...domain.policies import BackoffPolicy
from ...domain.states import DeathReason, Ending, FailureKind, JobState
from ...models import Lease
from .base import AT_ONCE, DAY, EXHAUSTED, MOST_ATTEMPTS, OTHER_QUEUE, ConformanceBase


class SettlingConformance(ConformanceBase):
    """Guarantees of ``complete``, ``fail``, ``recorded``, ``is_completed`` and ``put_off_since``."""

    # -- success -------------------------------------------------------------------------------------------------

    def test_completed_job_never_comes_back(self) -> None:
        """Not to a claim, not to the reaper, however much time passes."""
        self.enqueue()
        self.complete(self.claim_one())

        self.advance(100_000)

        assert self.reap() == []
        assert self.store.promote() == set()
        assert self.store.ready_queues() == []

    def test_completed_job_is_kept_with_its_result(self) -> None:
        """Whole, for as long as its retention says."""
        job = self.enqueue(tenant="acme", args="[1]", metadata='{"team":"shop"}')

        self.complete(self.claim_one(), result='{"sent":1}', retention=timedelta(hours=1))

        kept = self.finished(job.pk)
        assert (kept.outcome, kept.result, kept.attempts) == (Ending.SUCCEEDED, '{"sent":1}', 1)
        assert (kept.tenant, kept.args, kept.metadata, kept.worker) == ("acme", "[1]", '{"team":"shop"}', "worker-1")
        assert kept.started_at is not None
        assert kept.enqueued_at <= kept.finished_at
        assert kept.finished_at - kept.started_at == timedelta(seconds=0.25)
        assert kept.expires_at - kept.finished_at == timedelta(hours=1)

    def test_completed_job_without_retention_leaves_nothing(self) -> None:
        """Neither its row nor the failures of earlier attempts, which would explain a row that is gone."""
        job = self.enqueue()
        self.fail_job(self.claim_one())

        self.complete(self.claim_one(), retention=timedelta())

        assert self.places(job.pk) == []
        assert self.failures(job.pk) == []

    def test_jobs_of_one_lease_are_completed_together_or_in_parts(self) -> None:
        """The lease goes with the last of them."""
        self.enqueue_many(3)
        first, *others = self.claim()

        assert self.complete(first, last=False)
        assert self.renew(first)
        assert self.complete(*others)

        assert not Lease.objects.using(self.store.alias).exists()

    # -- failure -------------------------------------------------------------------------------------------------

    def test_failed_job_comes_back_with_its_attempt_counted(self) -> None:
        """And the next attempt is told why."""
        job = self.enqueue()

        assert self.fail_job(self.claim_one(), message="boom")

        again = self.claim_one()
        assert (again.id, again.attempts, again.last_error) == (job.pk, 2, "OSError: boom")

    def test_failure_is_recorded_whole(self) -> None:
        """What failed, when, where and what is next."""
        job = self.enqueue()
        claimed = self.claim_one()

        self.fail_job(claimed, Retry(timedelta(seconds=60)), message="boom", traceback="Traceback ...", run_seconds=2.0)

        [failure] = self.failures(job.pk)
        assert (failure.kind, failure.error_class, failure.message) == (FailureKind.ERROR, "builtins.OSError", "boom")
        assert (failure.traceback, failure.attempt) == ("Traceback ...", 1)
        assert (failure.worker, failure.lease_id) == ("worker-1", claimed.lease_id)
        assert failure.failed_at - failure.started_at == timedelta(seconds=2)
        assert failure.next_try_at is not None
        assert failure.next_try_at - failure.failed_at == timedelta(seconds=60)

    def test_failed_job_waits_out_its_delay(self) -> None:
        """A broken dependency is left alone for as long as the policy says."""
        self.enqueue()
        self.fail_job(self.claim_one(), Retry(timedelta(seconds=60)))

        self.advance(58)
        self.store.promote()
        assert self.claim() == []

        self.advance(3)
        self.store.promote()
        assert self.claim_one().attempts == 2

    def test_rejected_job_skips_its_remaining_attempts(self) -> None:
        """What can never succeed is a dead letter at once, whole."""
        job = self.enqueue(tenant="acme", args="[1]", max_attempts=5)

        self.fail_job(self.claim_one(), Bury(DeathReason.REJECTED), kind=FailureKind.REJECTED)

        letter = self.dead(job.pk)
        assert self.places(job.pk) == ["dead"]
        assert (letter.reason, letter.attempts, letter.last_error) == (DeathReason.REJECTED, 1, "OSError: boom")
        assert (letter.tenant, letter.args, letter.max_attempts) == ("acme", "[1]", 5)
        assert self.failures(job.pk)[0].next_try_at is None

    def test_dead_letter_has_every_failure_in_order(self) -> None:
        """The whole history, and not only the last straw."""
        job = self.enqueue()
        for message in ("one", "two"):
            self.fail_job(self.claim_one(), message=message)
        self.bury(self.claim_one(), message="three")

        failures = list(self.dead(job.pk).failures)

        assert [failure.message for failure in failures] == ["one", "two", "three"]
        assert [failure.attempt for failure in failures] == [1, 2, 3]

    def test_attempt_that_does_not_count_is_given_back(self) -> None:
        """An interruption, or a task that is not deployed yet, uses up no attempt; its failure is recorded still."""
        job = self.enqueue()

        self.fail_job(self.claim_one(), Retry(timedelta(), counted=False), kind=FailureKind.INTERRUPTED)

        assert (self.live(job.pk).attempts, self.live(job.pk).interruptions) == (0, 1)
        assert len(self.failures(job.pk)) == 1
        assert self.claim_one().attempts == 1

    def test_failure_ends_a_row_of_lapses(self) -> None:
        """A job whose worker lived to report is no suspect any more."""
        job = self.enqueue()
        self.lapse(self.claim_one())

        self.fail_job(self.claim_one())

        assert self.live(job.pk).lapses == 0

    def test_late_attempts_wait_no_longer_than_the_cap(self) -> None:
        """No attempt number is so high that its delay cannot be computed or stored."""
        backoff = BackoffPolicy()
        job = self.enqueue(attempts=MOST_ATTEMPTS - 2, max_attempts=MOST_ATTEMPTS)
        claimed = self.claim_one()

        self.fail_job(claimed, Retry(backoff.delay(claimed.attempts, claimed.id)))

        waits = self.live(job.pk).ready_at - self.store.now()
        assert backoff.cap * (1 - backoff.jitter) - timedelta(seconds=5) < waits <= backoff.cap

    # -- what a worker may ask about -----------------------------------------------------------------------------

    def test_settlement_whose_answer_was_lost_can_be_looked_up(self) -> None:
        """A connection may break after the commit: what is recorded must not be reported as lost."""
        self.enqueue_many(4)
        completed, failed, running, dead = (self.claim_one() for _ in range(4))
        self.complete(completed)
        self.fail_job(failed, Retry(timedelta(hours=1)))
        self.bury(dead)

        recorded = self.store.recorded([completed, failed, running, dead], "worker-1")

        assert recorded == {completed.id, failed.id, dead.id}

    def test_record_of_the_reaper_is_not_taken_for_the_worker_s_own(self) -> None:
        """What was taken from a worker that was cut off has not been settled by it: it must hear of its loss."""
        self.enqueue()
        lost = self.claim_one()
        self.lapse(lost)

        assert self.store.recorded([lost], "worker-1") == set()

    def test_putting_off_is_counted_for_this_job_alone(self) -> None:
        """A new job under an old id has all the patience that its predecessor has used up."""
        job_id = new_id()
        put_off = Retry(timedelta(), counted=False)
        self.enqueue(job_id)
        self.fail_job(self.claim_one(), put_off, kind=FailureKind.UNKNOWN_TASK)
        self.advance(7200)
        self.fail_job(self.claim_one(), Bury(DeathReason.UNKNOWN_TASK), kind=FailureKind.UNKNOWN_TASK)
        self.advance(1)
        self.enqueue(job_id)

        assert self._put_off(self.claim_one()) == (0, None)

    def test_putting_off_is_counted_from_the_first_time(self) -> None:
        """Patience is measured from when the task was first missed."""
        self.enqueue()
        for _ in range(3):
            claimed = self.claim_one()
            self.fail_job(claimed, Retry(timedelta(), counted=False), kind=FailureKind.UNKNOWN_TASK)
            self.advance(100)

        times, since = self._put_off(self.claim_one())

        assert times == 3
        assert since is not None
        assert 299 < (self.store.now() - since).total_seconds() < 310

    def test_retry_at_once_keeps_the_place_in_the_queue(self) -> None:
        """Without a delay a job stays as old as it is, and is not sent to the end."""
        first, second = (self.enqueue(ready_at=self.store.now() - timedelta(seconds=age)) for age in (20, 10))
        self.fail_job(self.claim_one(), AT_ONCE)

        assert [job.id for job in self.claim()] == [first.pk, second.pk]

    def test_settled_states_are_what_the_model_knows(self) -> None:
        """A retry without delay is ready, one with delay is scheduled, and neither keeps a lease."""
        now, later = self.enqueue(), self.enqueue()
        self.fail_job(self.claim_one(), AT_ONCE)
        self.release(self.claim_one())
        for claimed in self.claim():
            self.fail_job(claimed, AT_ONCE if claimed.id == now.pk else Retry(timedelta(seconds=5)), last=False)

        assert (self.live(now.pk).state, self.live(now.pk).lease_id) == (JobState.READY, None)
        assert (self.live(later.pk).state, self.live(later.pk).lease_id) == (JobState.SCHEDULED, None)

    # -- success in a transaction of the body's own --------------------------------------------------------------

    def test_completion_that_is_rolled_back_never_was(self) -> None:
        """The job is as it was, under its lease, with all that was written beside it undone."""
        job = self.enqueue()
        claimed = self.claim_one()
        with self.assertRaises(ZeroDivisionError), self.store.writing():
            self.store.pin()
            assert self.complete(claimed, last=False)
            self.enqueue(queue=OTHER_QUEUE)
            raise ZeroDivisionError

        assert self.places(job.pk) == ["live"]
        assert self.store.ready_queues() == []
        assert self.complete(claimed)

    def test_completion_of_which_the_answer_was_lost_is_found(self) -> None:
        """By its row, or, where none is kept, by the lease that holds nothing any more."""
        for retention in (DAY, timedelta()):
            self.enqueue()
            claimed = self.claim_one()
            assert not self.store.is_completed(claimed, "worker-1")
            self.complete(claimed, retention=retention, last=False)

            assert self.store.is_completed(claimed, "worker-1")

    def test_other_endings_are_not_taken_for_a_completion(self) -> None:
        """Nor the success of another worker, who took the job over."""
        self.enqueue_many(2)
        ours, failed = self.claim_one(), self.claim_one()
        self.fail_job(failed, EXHAUSTED)
        self.lapse(ours)
        theirs = self.claim_one("worker-2")

        assert not self.store.is_completed(failed, "worker-1")
        assert not self.store.is_completed(ours, "worker-1")
        self.complete(theirs, retention=timedelta())
        assert not self.store.is_completed(ours, "worker-1")

    def _put_off(self, job: ClaimedJob) -> tuple[int, datetime | None]:
        return self.store.put_off_since(job.id, job.attempts)
