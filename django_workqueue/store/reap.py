"""Taking work back from those who never came back, and making due jobs ready."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import Min, Q, QuerySet

from ..domain.outcomes import Bury, Cancel, Decision, Failed, Retry
from ..domain.states import DeathReason, FailureKind, JobState
from ..models import Failure, Job, Lease
from .limits import Limiting
from .pauses import READY_OR_BLOCKED
from .settle import PUT_BACK, GivenBack, new_failure, put_back

Lanes = set[tuple[str, str]]

MOST_JOBS = 200
"""Jobs taken back in one transaction, or as many as the lease that passes this number covers."""


@dataclass(frozen=True, slots=True)
class Lapse:
    """One job whose lease ended without an outcome, as the policy must judge it."""

    job_id: UUID
    queue: str
    attempts: int
    max_attempts: int
    lapses: int
    """Lapses in a row, this one included."""
    shared: bool
    """Whether the lease covered other jobs too, so that the culprit is not known."""
    kind: FailureKind
    cancel_requested: bool = False
    """Whether somebody wants the job no more."""


class Outlook(NamedTuple):
    """What there is to do besides running jobs."""

    due: timedelta | None
    """How long until the next scheduled job is due; None when there is none."""
    lapsed: bool
    """Whether there are lapsed leases."""
    withheld: bool
    """Whether there are blocked or parked jobs."""


Judge = Callable[[Lapse], Decision]


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """One job that was taken back: where it was, and what became of it."""

    job_id: UUID
    task: str
    queue: str
    tenant: str
    worker: str
    kind: FailureKind
    attempts: int
    died: DeathReason | None
    last_error: str
    cancelled: bool = False
    concurrency_key: str | None = None


class Reaping(Limiting):
    """Reap, adopt and promote: safe to run in every worker at once, and they depend on no job, queue or slot."""

    def reap(self, judge: Judge, *, limit: int = 20) -> list[Reclaimed]:
        """
        Take back the jobs of up to ``limit`` lapsed leases, each with its attempt counted and a Failure row.

        ``judge`` decides between another try and the dead letters. The leases stay locked from the read to the write:
        two reapers never meet, and neither a renewal nor a completion can slip in between.
        """
        expired = Lease.objects.using(self.alias).expired(self.clock()).order_by("pk")
        return self._reclaim(expired, judge, _kind_of_lapse, limit=limit)

    def adopt(self, workers: Collection[str], judge: Judge) -> list[Reclaimed]:
        """Take back at once what these workers, known to be gone, held. Attempts count, no backoff applies."""
        held = Lease.objects.using(self.alias).filter(worker__in=workers).order_by("pk")
        adopted: list[Reclaimed] = []
        while reclaimed := self._reclaim(held, judge, lambda _lease: FailureKind.ADOPTED, limit=MOST_JOBS):
            adopted += reclaimed
        return adopted

    def rescue_orphans(self, *, limit: int = 100) -> GivenBack:
        """
        Give back up to ``limit`` leased jobs whose lease row is gone.

        Nothing of ours leaves such rows; a hand that deletes leases does, and no sweep that starts from leases would
        find them again.
        """
        leases = Lease.objects.using(self.alias).values("pk")
        with self.transaction():
            orphans = Job.objects.using(self.alias).filter(lease__isnull=False).exclude(lease__in=leases)
            found = list(orphans.values_list("pk", flat=True)[:limit])
            self.lock_workflows(self._workflows_of(Q(pk__in=found)))
            ids = set(self._unheld(orphans.filter(pk__in=found)).values_list("pk", flat=True))
            returning = Q(pk__in=ids)
            cancelled = self._end_unwanted(returning)
            Job.objects.using(self.alias).filter(returning).update(
                state=JobState.READY, lease=None, dedupe_key=self._key_when_waiting(returning)
            )
        return GivenBack(ids, cancelled)

    def promote(self, *, limit: int = 500) -> Lanes:
        """
        Make up to ``limit`` due jobs ready, keeping their due time as readiness, and return their lanes.

        Those with a concurrency key become blocked, and ready at once as far as their key has slots.
        """
        due = self._scheduled().filter(ready_at__lte=self.clock()).order_by("ready_at")
        if not due.exists():
            return set()
        with self.transaction():
            rows = list(self._unheld(due).values_list("pk", "queue", "tenant", "concurrency_key")[:limit])
            Job.objects.using(self.alias).filter(pk__in=[row[0] for row in rows]).update(state=READY_OR_BLOCKED)
        return self._admit_promoted([row[1:] for row in rows])

    def next_due(self) -> timedelta | None:
        """Return how long until the next scheduled job is due, by the database's clock; None when there is none."""
        due: datetime | None = self._scheduled().aggregate(due=Min("ready_at"))["due"]
        return None if due is None else due - self.now()

    def outlook(self) -> Outlook:
        """Look for everything at once: ``next_due()``, lapsed leases and ``has_withheld()``."""
        lapsed = Lease.objects.using(self.alias).expired(self.clock()).exists()
        return Outlook(self.next_due(), lapsed, self.has_withheld())

    # -- steps ---------------------------------------------------------------------------------------------------

    def _admit_promoted(self, rows: Sequence[tuple[str, str, str | None]]) -> Lanes:
        keys = {(queue, tenant, key) for queue, tenant, key in rows if key is not None}
        if keys:
            self.admit(keys)
        return {(queue, tenant) for queue, tenant, _ in rows}

    def _scheduled(self) -> QuerySet[Job]:
        return Job.objects.using(self.alias).scheduled()

    def _reclaim(
        self, leases: QuerySet[Lease], judge: Judge, kind_of: Callable[[Lease], FailureKind], *, limit: int
    ) -> list[Reclaimed]:
        """Take back the jobs of up to ``limit`` of these leases; empty when there are no such leases any more."""
        while True:
            with self.transaction():
                found = list(self._unheld(leases)[:limit])
                reclaimed = self._reclaim_leases(found, judge, kind_of)
            # Those whose jobs were settled one by one give nothing back, and are not the end of the list.
            if reclaimed or not found:
                return reclaimed

    def _reclaim_leases(
        self, leases: Sequence[Lease], judge: Judge, kind_of: Callable[[Lease], FailureKind]
    ) -> list[Reclaimed]:
        reclaimed: list[Reclaimed] = []
        emptied: list[int] = []
        now = self.now()
        # Those of all the leases at once: whoever ends members of several workflows takes them in one order.
        self.lock_workflows(self._workflows_of(Q(lease__in=[lease.pk for lease in leases])))
        for lease in leases:
            # The rest is for the next pass: a long transaction would hold up whoever waits for these rows.
            if len(reclaimed) >= MOST_JOBS:
                break
            reclaimed += self._reclaim_lease(lease, kind_of(lease), judge, now)
            emptied.append(lease.pk)
        Lease.objects.using(self.alias).filter(pk__in=emptied).delete()
        return reclaimed

    def _reclaim_lease(self, lease: Lease, kind: FailureKind, judge: Judge, now: datetime) -> list[Reclaimed]:
        jobs = self._jobs_of(lease)
        failed = Failed(kind=kind, message=_explain(kind, lease), run_seconds=(now - lease.acquired_at).total_seconds())
        failures, returning, cancelled, reclaimed = [], [], [], []
        for job in jobs:
            job.lapses += 1
            job.last_error = failed.summary
            decision = judge(_lapse(job, kind, shared=len(jobs) > 1))
            failures.append(new_failure(job, lease.pk, failed, decision, worker=lease.worker, now=now))
            reclaimed.append(_reclaimed(job, lease, kind, decision))
            match decision:
                case Bury():
                    self._bury(job, decision.reason, now)
                case Cancel():
                    cancelled.append(job)
                case Retry():
                    put_back(job, decision, now)
                    returning.append(job)
        Failure.objects.using(self.alias).bulk_create(failures)
        self._free_taken_keys(returning)
        Job.objects.using(self.alias).bulk_update(returning, PUT_BACK)
        for job in cancelled:
            # Where nothing is kept of them, their failures go as well.
            self._cancel(job, now, worker=lease.worker, run_seconds=failed.run_seconds)
        return reclaimed

    def _jobs_of(self, lease: Lease) -> list[Job]:
        """Return the jobs under a lease, waiting for whoever is settling one at this moment."""
        # In no order: with sorts ruled out it would be had from the primary key, by a walk through the whole backlog.
        jobs = Job.objects.using(self.alias).filter(lease=lease.pk).order_by()
        if self.connection.features.has_select_for_update:
            jobs = jobs.select_for_update(of=("self",))
        return sorted(jobs, key=lambda job: job.pk)


def _lapse(job: Job, kind: FailureKind, *, shared: bool) -> Lapse:
    return Lapse(
        job.pk, job.queue, job.attempts, job.max_attempts, job.lapses, shared, kind, job.cancel_requested_at is not None
    )


def _reclaimed(job: Job, lease: Lease, kind: FailureKind, decision: Decision) -> Reclaimed:
    return Reclaimed(
        job_id=job.pk,
        task=job.task,
        queue=job.queue,
        tenant=job.tenant,
        worker=lease.worker,
        kind=kind,
        attempts=job.attempts,
        died=decision.reason if isinstance(decision, Bury) else None,
        last_error=job.last_error,
        cancelled=isinstance(decision, Cancel),
        concurrency_key=job.concurrency_key,
    )


def _kind_of_lapse(lease: Lease) -> FailureKind:
    return FailureKind.CAPPED if lease.expires_at >= lease.deadline_at else FailureKind.LAPSED


def _explain(kind: FailureKind, lease: Lease) -> str:
    """Return what a person should read about a lease that ended without an outcome."""
    match kind:
        case FailureKind.CAPPED:
            held = (lease.deadline_at - lease.acquired_at).total_seconds()
            return f"Worker {lease.worker} reached the longest permitted lease, {held:g} s (WORKQUEUE['MAX_LEASE'])."
        case FailureKind.ADOPTED:
            return f"Worker {lease.worker} restarted while it held the job."
        case _:
            return f"Worker lost: the lease of {lease.worker} lapsed at {lease.expires_at:%Y-%m-%d %H:%M:%S %Z}."
