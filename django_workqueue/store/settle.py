"""Every ending of a claim, each behind the fence: the lease still holds, and the job is still under it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Greatest, Least

from ..conf import get_settings
from ..domain.fingerprints import fingerprint
from ..domain.outcomes import Bury, Cancel, Decision, Failed, Retry, Settlement, Succeeded
from ..domain.states import DeathReason, Ending, FailureKind, JobState, MemberState
from ..models import DeadLetter, Failure, FinishedJob, Job, Lease
from ..models.base import COPIED
from .recorded import Recorded
from .workflows import Flowing, Linked

FREE_SINCE_START = Q(dedupe_until_start=True, state=JobState.LEASED)
"""The jobs whose key another may have, as they run."""
ASKED_TO_END = Q(cancel_requested_at__isnull=False)


class GivenBack(NamedTuple):
    """What came of giving jobs back: those that were, and those of them that wait no more, having been cancelled."""

    ids: set[UUID]
    cancelled: list[FinishedJob]


class Settling(Flowing, Recorded):
    """Complete, fail, release and renew in the ORM, right on any database."""

    def complete(self, lease_id: int, done: Sequence[Settlement], *, worker: str, last: bool) -> set[UUID]:
        """
        Move these succeeded jobs out of the live table and return the ids that were.

        An id that is missing has lost its lease, and nothing was written for it. ``last`` says that the lease covers
        nothing else any more and goes with them.
        """
        with self.transaction():
            held = {job.pk: job for job in self._held(lease_id, [each.job.id for each in done])}
            now = self.now()
            FinishedJob.objects.using(self.alias).bulk_create(
                _finished(held[each.job.id], each, worker, now)
                for each in done
                if each.job.id in held and each.retention
            )
            # Failures live as long as the row that they explain.
            forgotten = [each.job.id for each in done if each.job.id in held and not each.retention]
            Failure.objects.using(self.alias).filter(job_id__in=forgotten).delete()
            Job.objects.using(self.alias).filter(pk__in=held.keys()).delete()
            self._close(lease_id, last=last)
        return set(held)

    def complete_members(self, lease_id: int, done: Sequence[Settlement], *, worker: str, last: bool) -> Linked:
        """Do as ``complete`` for jobs, some of them members of workflows, and carry those on in one transaction."""
        with self.transaction():
            self._lock_lease(lease_id)
            workflows = self.lock_workflows(each.job.workflow for each in done)
            settled = self.complete(lease_id, done, worker=worker, last=last)
            started = self.carry_on(workflows, [each for each in done if each.job.id in settled])
        return Linked(settled, started)

    def fail(self, settlement: Settlement, decision: Decision, *, worker: str, last: bool) -> Decision | None:
        """
        Record an attempt that did not succeed and put the job back, bury it or cancel it, in one transaction.

        Returns what was done, which is the decision's ``if_cancelled`` where the job was to be cancelled; None, having
        written nothing, when the lease no longer holds.
        """
        job_id, lease_id = settlement.job.id, settlement.job.lease_id
        outcome = settlement.outcome
        if isinstance(outcome, Succeeded):
            raise TypeError(f"Job {job_id} succeeded; complete() settles it.")
        with self.transaction():
            job = self._held(lease_id, [job_id], workflows=[settlement.job.workflow]).first()
            if job is None:
                return None
            now = self.now()
            if isinstance(decision, Retry) and job.cancel_requested_at is not None:
                decision = decision.if_cancelled
            if isinstance(outcome, Failed):
                new_failure(job, lease_id, outcome, decision, worker=worker, now=now).save(using=self.alias)
                job.last_error = outcome.summary
                job.interruptions += outcome.kind is FailureKind.INTERRUPTED
            job.lapses = 0
            match decision:
                case Bury():
                    self._bury(job, decision.reason, now)
                case Cancel():
                    self._cancel(job, now, worker=worker, run_seconds=outcome.run_seconds)
                case Retry():
                    put_back(job, decision, now)
                    self._free_taken_keys([job])
                    job.save(using=self.alias, update_fields=PUT_BACK)
            self._close(lease_id, last=last)
        return decision

    def release(self, lease_id: int, job_ids: Collection[UUID], *, last: bool) -> GivenBack:
        """
        Give unstarted jobs back as if they had never been claimed.

        Those that were to be cancelled are over.
        """
        with self.transaction():
            held = self._hold(lease_id, job_ids)
            cancelled = self._unclaim(Q(pk__in=held))
            self._close(lease_id, last=last)
        return GivenBack(held, cancelled)

    def release_unknown(self, worker: str, known: Collection[int]) -> GivenBack:
        """
        Give back what ``worker`` holds under leases that it does not know of.

        A connection may break after the claim's commit and before its answer: those jobs are held by a worker that will
        never run them.
        """
        with self.transaction():
            unknown = Lease.objects.using(self.alias).filter(worker=worker).exclude(pk__in=known)
            # Leases before jobs, as the reaper locks them; one that it has in hand is its own.
            ids = list(self._unheld(unknown).values_list("pk", flat=True))
            if not ids:
                return GivenBack(set(), [])
            returning = Q(lease__in=ids)
            held = set(self._lock_jobs(returning).values_list("pk", flat=True))
            cancelled = self._unclaim(returning)
            Lease.objects.using(self.alias).filter(pk__in=ids).delete()
        return GivenBack(held, cancelled)

    def renew(self, leases: Mapping[int, timedelta]) -> set[int]:
        """
        Extend each lease by its length from now, never past its deadline and never backwards.

        Returns the ids that still hold; the others are lost.
        """
        with self.transaction():
            now = self.now()
            alive = Lease.objects.using(self.alias).filter(pk__in=leases, expires_at__gt=now)
            renewed = set(alive.values_list("pk", flat=True))
            for length in set(leases.values()):
                ids = [pk for pk in renewed if leases[pk] == length]
                Lease.objects.using(self.alias).filter(pk__in=ids).update(
                    renewed_at=now,
                    expires_at=Greatest(F("expires_at"), Least(Value(now + length), F("deadline_at"))),
                )
        return renewed

    # -- shared steps --------------------------------------------------------------------------------------------

    def _held(
        self, lease_id: int, job_ids: Collection[UUID], *, workflows: Iterable[UUID | None] = ()
    ) -> QuerySet[Job]:
        """Return those of ``job_ids`` that ``lease_id`` still holds, locked where rows can be, and ``workflows``."""
        # The lease before its jobs, as the reaper locks them: neither waits for the other in a ring.
        if not self._lock_lease(lease_id):
            return Job.objects.using(self.alias).none()
        self.lock_workflows(workflows)
        held = Job.objects.using(self.alias).filter(pk__in=job_ids, lease=lease_id)
        return held.select_for_update() if self.connection.features.has_select_for_update else held

    def _hold(self, lease_id: int, job_ids: Collection[UUID]) -> set[UUID]:
        """Return the ids of those that ``lease_id`` still holds, locked; before them, the workflows of members."""
        members = Q(pk__in=job_ids, lease=lease_id)
        if self.transaction_depth() > 1:
            # Who claims within limits and parks has locked these jobs already, and none can have been asked to end
            # since; whoever cancels one of them has locked its workflow, and waits.
            members &= ASKED_TO_END
        return set(self._held(lease_id, job_ids, workflows=self._workflows_of(members)).values_list("pk", flat=True))

    def _lock_jobs(self, wanted: Q) -> QuerySet[Job]:
        """Return these jobs, locked where rows can be, after the workflows of members: each may prove cancelled."""
        self.lock_workflows(self._workflows_of(wanted))
        jobs = Job.objects.using(self.alias).filter(wanted)
        return jobs.select_for_update() if self.connection.features.has_select_for_update else jobs

    def _workflows_of(self, wanted: Q) -> QuerySet[Job, UUID | None]:
        """Return the workflows of these jobs, to be locked before the jobs."""
        members = Job.objects.using(self.alias).filter(wanted, workflow__isnull=False)
        return members.order_by().values_list("workflow", flat=True)

    def _lock_lease(self, lease_id: int) -> bool:
        """Lock a lease where rows can be, and return whether it holds."""
        alive = Lease.objects.using(self.alias).filter(pk=lease_id, expires_at__gt=self.clock())
        if self.connection.features.has_select_for_update:
            alive = alive.select_for_update()
        return bool(alive.values_list("pk"))

    def _close(self, lease_id: int, *, last: bool) -> None:
        """Remove a lease that covers nothing more. One that lapsed stays: the reaper finds its jobs by it."""
        if last:
            Lease.objects.using(self.alias).filter(pk=lease_id, expires_at__gt=self.clock()).delete()

    def _unclaim(self, returning: Q, state: JobState = JobState.READY) -> list[FinishedJob]:
        """Make locked jobs wait again as if they had never been claimed. Returns those that were cancelled instead."""
        cancelled = self._end_unwanted(returning)
        Job.objects.using(self.alias).filter(returning).update(
            state=state, lease=None, attempts=F("attempts") - 1, dedupe_key=self._key_when_waiting(returning)
        )
        return cancelled

    def _key_when_waiting(self, returning: Q) -> Case:
        """
        Return the key with which a job may wait again: one that was free at its start may be another's by now.

        ``returning`` finds the jobs that come back by the same statement; of those with one key the first keeps it.
        """
        rivals = Job.objects.using(self.alias).filter(
            queue=OuterRef("queue"), tenant=OuterRef("tenant"), dedupe_key=OuterRef("dedupe_key")
        )
        # Two questions, as the unique index answers the first one only by itself.
        taken = Exists(rivals.exclude(FREE_SINCE_START)) | Exists(rivals.filter(returning, pk__lt=OuterRef("pk")))
        return Case(When(Q(dedupe_until_start=True) & taken, then=None), default=F("dedupe_key"))

    def _free_taken_keys(self, jobs: Iterable[Job]) -> None:
        """Take the key from those of ``jobs``, about to wait again, whose key another job got meanwhile."""
        free = {job.pk for job in jobs if job.dedupe_until_start and job.dedupe_key is not None}
        if free:
            returning = Q(pk__in=free)
            kept = Job.objects.using(self.alias).filter(returning).annotate(kept=self._key_when_waiting(returning))
            keys = dict(kept.values_list("pk", "kept"))
            for job in jobs:
                job.dedupe_key = keys.get(job.pk, job.dedupe_key)

    def _end_unwanted(self, returning: Q) -> list[FinishedJob]:
        """End those of the jobs that are about to wait again that were to be cancelled, and return them."""
        unwanted = Job.objects.using(self.alias).filter(returning).filter(ASKED_TO_END)
        return [self._cancel(job, self.now()) for job in unwanted]

    def _bury(self, job: Job, reason: DeathReason, now: datetime) -> None:
        cause = fingerprint(job.task, job.last_error)
        DeadLetter.objects.using(self.alias).create(reason=reason, died_at=now, fingerprint=cause, **copied(job))
        # It goes where the job that it quotes is not at hand.
        self.lose_member(job, MemberState.DEAD, job.veiled_error)
        job.delete(using=self.alias)

    def _cancel(self, job: Job, now: datetime, *, worker: str = "", run_seconds: float | None = None) -> FinishedJob:
        """Move a job out of the live table for good. Its row is kept for as long as its queue says, as is a result."""
        retention = get_settings().queue(job.queue).retention
        finished = FinishedJob(
            outcome=Ending.CANCELLED,
            worker=worker,
            started_at=None if run_seconds is None else now - timedelta(seconds=run_seconds),
            finished_at=now,
            expires_at=now + retention,
            **copied(job),
        )
        if retention:
            finished.save(using=self.alias, force_insert=True)
        else:
            Failure.objects.using(self.alias).filter(job_id=job.pk).delete()
        Job.objects.using(self.alias).filter(pk=job.pk).delete()
        self.lose_member(job, MemberState.CANCELLED, "It was cancelled.")
        return finished


PUT_BACK = ("lease", "state", "ready_at", "attempts", "interruptions", "lapses", "last_error", "dedupe_key", "progress")
"""What put_back() may change, with what its callers do."""


def put_back(job: Job, decision: Retry, now: datetime) -> None:
    """Make ``job`` wait again: ready where it was, or scheduled after the decision's delay."""
    job.lease = None
    job.progress = None
    job.state = JobState.SCHEDULED if decision.delay else JobState.READY
    if decision.delay:
        job.ready_at = now + decision.delay
    if not decision.counted:
        job.attempts -= 1


def new_failure(job: Job, lease_id: int, failed: Failed, decision: Decision, *, worker: str, now: datetime) -> Failure:
    """Return the row that records a failed attempt."""
    return Failure(
        job_id=job.pk,
        attempt=job.attempts,
        kind=failed.kind,
        error_class=failed.error_class,
        message=failed.message,
        traceback=failed.traceback,
        worker=worker,
        lease_id=lease_id,
        started_at=now - timedelta(seconds=failed.run_seconds),
        failed_at=now,
        next_try_at=now + decision.delay if isinstance(decision, Retry) else None,
    )


def copied(job: Job | FinishedJob | DeadLetter) -> dict[str, object]:
    """Return the columns that travel with a job."""
    return {name: getattr(job, name) for name in COPIED}


def result_of(settlement: Settlement) -> str:
    """Return the result of a success as JSON text."""
    outcome = settlement.outcome
    if not isinstance(outcome, Succeeded):
        raise TypeError(f"Job {settlement.job.id} did not succeed; fail() settles it.")
    return outcome.result


def _finished(job: Job, settlement: Settlement, worker: str, now: datetime) -> FinishedJob:
    return FinishedJob(
        outcome=Ending.SUCCEEDED,
        result=result_of(settlement),
        worker=worker,
        started_at=now - timedelta(seconds=settlement.outcome.run_seconds),
        finished_at=now,
        expires_at=now + settlement.retention,
        **copied(job),
    )
