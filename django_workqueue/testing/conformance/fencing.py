"""The fence: a worker whose lease is lost is refused in everything that it reports, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from ...domain.ids import new_id
from ...domain.outcomes import ClaimedJob
from ...exceptions import LossReason
from ...models import Failure, FinishedJob, Job
from .base import AT_ONCE, ConformanceBase


class FencingConformance(ConformanceBase):
    """Guarantees of ``complete``, ``fail``, ``release``, ``renew`` and ``loss`` towards leases."""

    # -- lost leases ---------------------------------------------------------------------------------------------

    def test_lapsed_worker_is_refused_before_anybody_reaped(self) -> None:
        """The clock judges, not the reaper's round."""
        self.enqueue()
        claimed = self.claim_one(lease=30)
        self.advance(31)

        self.assert_refused(claimed, "expired")

    def test_lapsed_worker_is_refused_after_the_reaper_came(self) -> None:
        """The job waits for somebody else."""
        self.enqueue()
        claimed = self.claim_one()
        self.lapse(claimed)

        self.assert_refused(claimed, "expired")

    def test_worker_is_refused_once_another_took_over(self) -> None:
        """And is told who holds the job now."""
        self.enqueue()
        claimed = self.claim_one("worker-1")
        self.lapse(claimed)
        taken_over = self.claim_one("worker-2")

        self.assert_refused(claimed, "taken", holder="worker-2")
        assert self.renew(taken_over)

    def test_worker_of_the_same_name_is_refused_with_an_older_lease(self) -> None:
        """The fence is the lease and not the name: a thread that woke up late must not complete the newer claim."""
        self.enqueue()
        claimed = self.claim_one("worker-1")
        self.lapse(claimed)
        newer = self.claim_one("worker-1")

        self.assert_refused(claimed, "taken", holder="worker-1")
        assert self.complete(newer)

    def test_capped_worker_is_refused(self) -> None:
        """Renewals end at the cap, and after it a worker that beats is refused like one that does not."""
        self.enqueue()
        claimed = self.claim_one(lease=30, max_lease=40)
        self.advance(29)
        assert self.renew(claimed)
        self.advance(12)

        self.assert_refused(claimed, "capped")

        self.reap()
        self.assert_refused(claimed, "capped")

    def test_worker_is_refused_after_its_work_was_adopted(self) -> None:
        """Its successor has given the job back."""
        self.enqueue()
        claimed = self.claim_one("worker-1")
        self.store.adopt(["worker-1"], lambda _lapse: AT_ONCE)

        self.assert_refused(claimed, "expired")

    def test_released_job_is_out_of_the_workers_hands(self) -> None:
        """Giving back ends the claim."""
        self.enqueue()
        claimed = self.claim_one()
        self.release(claimed)

        self.assert_refused(claimed, "expired")

    def test_failed_job_is_out_of_the_workers_hands(self) -> None:
        """A second report about one attempt is refused: it counts once."""
        self.enqueue()
        claimed = self.claim_one()
        self.fail_job(claimed)

        self.assert_refused(claimed, "expired")

    def test_completed_job_cannot_be_reported_again(self) -> None:
        """Nor failed, nor given back: it is over."""
        self.enqueue()
        claimed = self.claim_one()
        self.complete(claimed)

        self.assert_refused(claimed, "expired")

    def test_report_about_a_job_under_another_lease_is_refused(self) -> None:
        """A live lease opens its own jobs only, also for the worker that holds both."""
        self.enqueue_many(2)
        first, second = self.claim_one(), self.claim_one()
        crossed = second._replace(lease_id=first.lease_id)

        for name in ("complete", "fail", "release"):
            assert not self.reports(last=False)[name](crossed), name
        assert self.places(second.id) == ["live"]
        assert self.renew(first)
        assert self.complete(second)

    def test_report_about_a_job_that_was_never_claimed_is_refused(self) -> None:
        """Waiting work is nobody's to settle."""
        self.enqueue_many(2)
        claimed = self.claim_one()
        waiting = self.claim_one()
        self.release(waiting)
        crossed = waiting._replace(lease_id=claimed.lease_id)

        assert not self.complete(crossed, last=False)
        assert not self.fail_job(crossed, last=False)
        assert self.store.loss(claimed.lease_id, waiting.id) == ("expired", "")

    def test_report_about_an_unknown_job_is_refused(self) -> None:
        """An id that is not here is a refusal, and no row comes of it."""
        self.enqueue()
        claimed = self.claim_one()
        unknown = claimed._replace(id=new_id())

        for name in ("complete", "fail", "release"):
            assert not self.reports(last=False)[name](unknown), name
        assert self.places(unknown.id) == []
        assert self.renew(claimed)

    def test_refusal_of_one_does_not_touch_its_neighbours(self) -> None:
        """In a batch of reports each stands for itself."""
        self.enqueue_many(2)
        first, second = self.claim()
        self.fail_job(first, last=False)

        assert not self.complete(first, second)
        assert self.places(first.id) == ["live"]
        assert self.places(second.id) == ["finished"]

    def test_lease_of_a_lapsed_worker_stays_for_the_reaper(self) -> None:
        """A late report must not take away the row by which the reaper finds the jobs."""
        job = self.enqueue()
        claimed = self.claim_one(lease=30)
        self.advance(31)
        self.complete(claimed, last=True)

        assert [each.job_id for each in self.reap()] == [job.pk]

    # -- renewal -------------------------------------------------------------------------------------------------

    def test_living_worker_keeps_its_claim(self) -> None:
        """A job may take much longer than its lease while the worker beats."""
        self.enqueue()
        claimed = self.claim_one(lease=10)

        for _ in range(4):
            self.advance(5)
            assert self.renew(claimed, seconds=10)
            assert self.reap() == []
        assert self.complete(claimed)

    def test_renewal_never_shortens_a_lease(self) -> None:
        """Workers of one fleet may run with different settings: a shorter beat must not cut a longer lease."""
        self.enqueue()
        claimed = self.claim_one(lease=120)
        before = self.lease_of(claimed).expires_at

        assert self.renew(claimed, seconds=31)

        assert self.lease_of(claimed).expires_at == before

    def test_renewal_never_passes_the_deadline(self) -> None:
        """A living worker whose job hangs must lose it in the end."""
        self.enqueue()
        claimed = self.claim_one(lease=30, max_lease=40)
        self.advance(25)

        assert self.renew(claimed, seconds=30)

        lease = self.lease_of(claimed)
        assert lease.expires_at == lease.deadline_at

    def test_each_lease_is_renewed_by_its_own_length(self) -> None:
        """Queues have leases of different lengths, and one statement renews them all; it answers those that hold."""
        self.enqueue_many(3)
        short, long, lapsed = self.claim_one(lease=30), self.claim_one(lease=30), self.claim_one(lease=5)
        self.advance(6)
        lengths = {short.lease_id: 40, long.lease_id: 400, lapsed.lease_id: 40}

        held = self.store.renew({lease: timedelta(seconds=length) for lease, length in lengths.items()})

        assert held == {short.lease_id, long.lease_id}
        gained = self.lease_of(long).expires_at - self.lease_of(short).expires_at
        assert abs(gained - timedelta(seconds=360)) < timedelta(seconds=1)

    # -- how the above is asserted -------------------------------------------------------------------------------

    def reports(self, *, last: bool = True) -> dict[str, Callable[[ClaimedJob], bool]]:
        """Return all that a worker can say of a claim; each answers whether it was heard."""
        return {
            "complete": lambda job: self.complete(job, last=last),
            "fail": lambda job: self.fail_job(job, last=last),
            "release": lambda job: self.release(job, last=last),
            "renew": self.renew,
        }

    def assert_refused(self, claimed: ClaimedJob, reason: LossReason, *, holder: str = "") -> None:
        """Assert that nothing which is said of this claim is heard or changes anything, and that the reason is told."""
        before = self._traces(claimed.id)
        for name, report in self.reports().items():
            assert not report(claimed), f"{name} was not refused"
            assert self._traces(claimed.id) == before, f"{name} was refused and still wrote something"
        assert self.store.loss(claimed.lease_id, claimed.id) == (reason, holder)

    def _traces(self, job_id: UUID) -> tuple[object, ...]:
        alias = self.store.alias
        finished = FinishedJob.objects.using(alias).filter(pk=job_id).values("result", "attempts").first()
        failures = Failure.objects.using(alias).filter(job_id=job_id).count()
        columns = ("state", "attempts", "lease", "ready_at", "lapses", "last_error")
        live = Job.objects.using(alias).filter(pk=job_id).values_list(*columns).first()
        return self.places(job_id), finished, failures, live
