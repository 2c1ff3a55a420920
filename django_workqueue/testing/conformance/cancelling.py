"""Cancel: what waits is over at once, what runs is asked to end, and nothing that was to be cancelled starts again."""

from __future__ import annotations

from datetime import timedelta

from django.test import override_settings

from ...domain.ids import new_id
from ...domain.outcomes import Bury, Cancel, Cancelled, ClaimedJob, Decision, Failed, Retry, Settlement
from ...domain.policies import BackoffPolicy
from ...domain.states import DeathReason, Ending, FailureKind, JobState
from ...lifecycle.reap import judge
from ...models import FinishedJob, Lease
from .base import AT_ONCE, ConformanceBase

DIES = Retry(timedelta(), if_cancelled=Bury(DeathReason.CANCELLED))


class CancellingConformance(ConformanceBase):
    """Guarantees of ``cancel``, ``cancel_requests`` and ``note_progress``, and of every ending after a request."""

    # -- jobs that wait ------------------------------------------------------------------------------------------

    def test_waiting_job_is_cancelled_at_once(self) -> None:
        """Whatever it waits for. It is kept whole, as a job that never ran."""
        ready, scheduled, blocked = (self.enqueue(state=state, tenant="acme", args="[1]") for state in _WAITING)

        for job in (ready, scheduled, blocked):
            assert isinstance(self.store.cancel(job.pk), FinishedJob)
            assert self.places(job.pk) == ["finished"]
            kept = self.finished(job.pk)
            assert (kept.outcome, kept.tenant, kept.args, kept.attempts) == (Ending.CANCELLED, "acme", "[1]", 0)
            assert (kept.worker, kept.started_at) == ("", None)
            assert kept.expires_at > kept.finished_at

        assert self.claim() == []

    def test_cancelled_job_frees_its_key(self) -> None:
        """The next one of the key is another job."""
        job = self.enqueue(dedupe_key="order-17")
        self.store.cancel(job.pk)

        assert not self.insert(dedupe_key="order-17").duplicate

    def test_cancelled_job_keeps_its_failures_or_leaves_nothing(self) -> None:
        """They explain a row; where its queue keeps none, they go with it."""
        job = self.enqueue()
        self.fail_job(self.claim_one(), Retry(timedelta(hours=1)))
        self.store.cancel(job.pk)
        assert len(self.failures(job.pk)) == 1

        other = self.enqueue()
        self.fail_job(self.claim_one(), Retry(timedelta(hours=1)))
        with override_settings(WORKQUEUE={"RETENTION": 0}):
            self.store.cancel(other.pk)
        assert self.places(other.pk) == []
        assert self.failures(other.pk) == []

    def test_cancel_finds_live_jobs_of_the_tenant_only(self) -> None:
        """Nobody reaches another's job, nor one that is over."""
        job = self.enqueue(tenant="acme")
        self.enqueue(tenant="other")
        over = self.claim_one(tenants=["other"])
        self.complete(over)

        assert self.store.cancel(job.pk, tenant="other") is None
        assert self.store.cancel(over.id) is None
        assert self.store.cancel(new_id()) is None
        assert self.places(job.pk) == ["live"]
        assert self.finished(over.id).outcome == Ending.SUCCEEDED

    # -- jobs that run -------------------------------------------------------------------------------------------

    def test_running_job_is_asked_and_its_worker_finds_the_request(self) -> None:
        """Among those of its own leases only. Asking twice keeps the first time, and force once it was asked for."""
        self.enqueue_many(2)
        job, other = self.claim_one(), self.claim_one("worker-2")
        assert self.store.cancel_requests([job.lease_id, other.lease_id]) == set()

        assert self.store.cancel(job.id) is not None
        asked_at = self.live(job.id).cancel_requested_at
        assert self.store.cancel_requests([job.lease_id, other.lease_id]) == {(job.id, job.lease_id, False)}
        self.store.cancel(job.id, force=True)
        self.store.cancel(job.id)

        assert self.live(job.id).cancel_requested_at == asked_at
        assert self.store.cancel_requests([job.lease_id]) == {(job.id, job.lease_id, True)}
        assert self.store.cancel_requests([other.lease_id]) == set()

    def test_attempt_that_was_cancelled_is_no_failure(self) -> None:
        """The job is over; who ran it and since when is on its row."""
        job = self._asked()

        assert self._end(job) is not None

        kept = self.finished(job.id)
        assert (kept.outcome, kept.worker, kept.attempts) == (Ending.CANCELLED, "worker-1", 1)
        assert kept.started_at is not None
        assert kept.finished_at - kept.started_at == timedelta(seconds=0.5)
        assert self.places(job.id) == ["finished"]
        assert self.failures(job.id) == []
        assert not Lease.objects.using(self.store.alias).exists()

    def test_attempt_may_end_as_cancelled_without_a_request(self) -> None:
        """A task may know by itself that nobody wants its job any more."""
        self.enqueue()
        job = self.claim_one()

        self._end(job)

        assert self.finished(job.id).outcome == Ending.CANCELLED

    def test_job_that_succeeds_after_the_request_has_succeeded(self) -> None:
        """It was done before it heard."""
        job = self._asked()

        assert self.complete(job)

        assert self.finished(job.id).outcome == Ending.SUCCEEDED

    def test_job_that_fails_after_the_request_is_not_retried(self) -> None:
        """The decision says what it becomes instead, and the answer says that it did."""
        dead, cancelled = self._asked(), self._asked()

        assert self._fail(dead, DIES) == Bury(DeathReason.CANCELLED)
        self._fail(cancelled, AT_ONCE)

        assert self.places(dead.id) == ["dead"]
        assert self.dead(dead.id).reason == DeathReason.CANCELLED
        assert self.finished(cancelled.id).outcome == Ending.CANCELLED
        assert [len(self.failures(each.id)) for each in (dead, cancelled)] == [1, 1]
        assert self.claim() == []

    def test_requeued_job_is_to_be_cancelled_no_more(self) -> None:
        """A person has decided otherwise."""
        job = self._asked()
        self._fail(job, DIES)

        self.store.requeue(job.id, attempts=1)

        assert self.store.cancel_requests([self.claim_one().lease_id]) == set()

    def test_job_that_comes_back_after_the_request_never_starts_again(self) -> None:
        """By whatever way it comes back: released, parked, of an unknown lease, reaped or adopted. It is answered."""
        released, unknown, reaped, adopted, parked = (self._asked(f"worker-{number}") for number in range(5))

        given_back = [
            self.store.release(released.lease_id, [released.id], last=True),
            self.store.release_unknown("worker-1", []),
            self.store.park(parked.lease_id, [parked.id], last=True),
        ]
        self.store.adopt(["worker-3"], judge)
        [lapse] = self.lapse(reaped)

        assert lapse.cancelled
        expected = [{released.id}, {unknown.id}, {parked.id}]
        assert [ids for ids, _ in given_back] == expected
        assert [{each.pk for each in cancelled} for _, cancelled in given_back] == expected
        for job in (released, unknown, reaped, adopted, parked):
            assert self.places(job.id) == ["finished"]
            assert self.finished(job.id).outcome == Ending.CANCELLED
        assert [failure.kind for failure in self.failures(reaped.id)] == [FailureKind.LAPSED]
        assert self.claim() == []

    def test_lost_worker_leaves_nothing_of_a_job_of_which_nothing_is_kept(self) -> None:
        """Not even the failure that says how it was lost."""
        job = self._asked()

        with override_settings(WORKQUEUE={"RETENTION": 0}):
            self.lapse(job)

        assert self.places(job.id) == []
        assert self.failures(job.id) == []

    def test_end_of_a_cancelled_attempt_is_refused_without_the_lease(self) -> None:
        """Another attempt counts, or another ending was written."""
        job = self._asked()
        self.advance(31)

        assert self._end(job) is None
        assert self.places(job.id) == ["live"]

    # -- progress ------------------------------------------------------------------------------------------------

    def test_progress_is_stored_and_ends_with_the_attempt(self) -> None:
        """The next one begins anew."""
        self.enqueue()
        job = self.claim_one()

        assert self.store.note_progress(job.id, job.lease_id, '{"done":3}')
        assert self.live(job.id).progress == '{"done":3}'
        self.fail_job(job)

        assert self.live(job.id).progress is None

    def test_progress_is_refused_without_the_lease(self) -> None:
        """A worker that was given up says nothing about the attempt of another."""
        self.enqueue()
        stale = self.claim_one(lease=5)
        self.advance(6)
        assert not self.store.note_progress(stale.id, stale.lease_id, '{"done":9}')
        self.reap()
        job = self.claim_one("worker-2")

        assert not self.store.note_progress(stale.id, stale.lease_id, '{"done":9}')
        assert not self.store.note_progress(new_id(), job.lease_id, '{"done":9}')
        assert self.live(job.id).progress is None

    # -- steps ---------------------------------------------------------------------------------------------------

    def _asked(self, worker: str = "worker-1") -> ClaimedJob:
        """Return a job that runs and is to be cancelled."""
        self.enqueue()
        job = self.claim_one(worker)
        self.store.cancel(job.id)
        return job

    def _end(self, job: ClaimedJob) -> Decision | None:
        settlement = Settlement(job, Cancelled(0.5), BackoffPolicy())
        return self.store.fail(settlement, Cancel(), worker="worker-1", last=True)

    def _fail(self, job: ClaimedJob, decision: Decision) -> Decision | None:
        settlement = Settlement(job, Failed(kind=FailureKind.ERROR, message="boom"), BackoffPolicy())
        return self.store.fail(settlement, decision, worker="worker-1", last=True)


_WAITING: tuple[JobState, ...] = (JobState.READY, JobState.SCHEDULED, JobState.BLOCKED)
