"""The hooks of the suite, and each verb of a store in one line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import OperationalError

from ...domain.ids import new_id
from ...domain.outcomes import Bury, ClaimedJob, Decision, Failed, Retry, Settlement, Succeeded
from ...domain.policies import BackoffPolicy
from ...domain.rotation import LaneTurn, Rotation
from ...domain.states import DeathReason, FailureKind
from ...lifecycle import claim as claiming
from ...lifecycle.reap import judge
from ...models import DeadLetter, Failure, FinishedJob, Job, Lease
from ...store import Store
from ...store.claim import ClaimOrder
from ...store.enqueue import Stored
from ...store.reap import Reclaimed

if TYPE_CHECKING:
    from django.test import TestCase as Mixed
else:
    Mixed = object

QUEUE, OTHER_QUEUE = "conformance", "conformance-other"
AT_ONCE = Retry(timedelta())
EXHAUSTED = Bury(DeathReason.EXHAUSTED)
DAY = timedelta(days=1)
MOST_ATTEMPTS = 32767
"""What a row can count."""


class ConformanceBase(Mixed):
    """Makes the store and speaks to it."""

    store: Store

    def make_store(self) -> Store:
        """Return the store under test."""
        raise NotImplementedError(f"{type(self).__name__} must say which store it tests: define make_store().")

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass by the clock that judges the store's rows."""
        self.store.shift(seconds)

    def absence(self) -> Exception:
        """Return what is raised when the database cannot be reached. Some databases tell it by the words alone."""
        return OperationalError("unable to open database file")

    def setUp(self) -> None:
        """Make the store, its connection fit for a worker's statements."""
        super().setUp()
        self.store = self.make_store()
        self.store.prepare()

    # -- verbs ---------------------------------------------------------------------------------------------------

    def insert(self, job_id: UUID | None = None, **columns: Any) -> Stored:
        """Store a job and answer what the store answers; an id that is given counts as the caller's choice."""
        job = _job(job_id or new_id(), **columns)
        [stored] = self.store.insert([job], given_ids=frozenset([job_id] if job_id else []))
        return stored

    def enqueue(self, job_id: UUID | None = None, **columns: Any) -> Job:
        """Store a job and return it."""
        return self.insert(job_id, **columns).job

    def enqueue_many(self, count: int, **columns: Any) -> list[Job]:
        """Store ``count`` jobs in one statement and return them in order."""
        return [job for job, _ in self.store.insert([_job(new_id(), **columns) for _ in range(count)])]

    def claim(
        self,
        worker: str = "worker-1",
        *,
        queue: str = QUEUE,
        tenants: Sequence[str] | None = None,
        limit: int = 10,
        quantum: int | None = None,
        lease: float = 30,
        max_lease: float = 3600,
    ) -> list[ClaimedJob]:
        """Claim from all lanes with work, or from those of ``tenants``, in this order."""
        lanes = self.store.lanes(queue) if tenants is None else tenants
        order = ClaimOrder(
            worker=worker,
            queue=queue,
            lanes=[LaneTurn(tenant) for tenant in lanes],
            limit=limit,
            quantum=quantum or limit,
            lease=timedelta(seconds=lease),
            max_lease=timedelta(seconds=max_lease),
        )
        return self.store.claim(order).jobs

    def claim_one(self, worker: str = "worker-1", **how: Any) -> ClaimedJob:
        """Claim the one job that is next."""
        [job] = self.claim(worker, limit=1, **how)
        return job

    def take_turn(self, rotation: Rotation, *, queue: str = QUEUE, limit: int = 1) -> list[ClaimedJob]:
        """Claim as a worker does, from the lanes whose turn it is."""
        rotation.learn(self.store.lanes(queue))
        return claiming.claim(self.store, rotation, queue=queue, worker="worker-1", limit=limit)

    def complete(self, *jobs: ClaimedJob, result: str = "null", retention: timedelta = DAY, last: bool = True) -> bool:
        """Report that these jobs of one lease succeeded, and return whether every report was taken."""
        done = [Settlement(job, Succeeded(result, 0.25), BackoffPolicy(), retention) for job in jobs]
        settled = self.store.complete(jobs[0].lease_id, done, worker="worker-1", last=last)
        return settled == {job.id for job in jobs}

    def fail_job(self, job: ClaimedJob, decision: Decision = AT_ONCE, *, last: bool = True, **failed: Any) -> bool:
        """Report that an attempt failed, and return whether the report was taken."""
        outcome = Failed(**{"kind": FailureKind.ERROR, "error_class": "builtins.OSError", "message": "boom"} | failed)
        settlement = Settlement(job, outcome, BackoffPolicy())
        return self.store.fail(settlement, decision, worker="worker-1", last=last) is not None

    def bury(self, job: ClaimedJob, **failed: Any) -> bool:
        """Report that the last attempt failed."""
        return self.fail_job(job, EXHAUSTED, **failed)

    def release(self, job: ClaimedJob, *, last: bool = True) -> bool:
        """Give a job back, and return whether it was still there to give."""
        return job.id in self.store.release(job.lease_id, [job.id], last=last).ids

    def renew(self, job: ClaimedJob, seconds: float = 30) -> bool:
        """Renew the job's lease, and return whether it still holds."""
        return job.lease_id in self.store.renew({job.lease_id: timedelta(seconds=seconds)})

    def reap(self, *, limit: int = 20) -> list[Reclaimed]:
        """Reap by the real policy."""
        return self.store.reap(judge, limit=limit)

    def lapse(self, job: ClaimedJob) -> list[Reclaimed]:
        """Let the lease of a claim lapse, and reap it."""
        lease = self.lease_of(job)
        self.advance((lease.expires_at - self.store.now()).total_seconds() + 1)
        return self.reap()

    # -- what is there -------------------------------------------------------------------------------------------

    def live(self, job_id: UUID) -> Job:
        """Return a live job as it is stored."""
        return Job.objects.using(self.store.alias).get(pk=job_id)

    def lease_of(self, job: ClaimedJob) -> Lease:
        """Return the lease under which a job was claimed."""
        return Lease.objects.using(self.store.alias).get(pk=job.lease_id)

    def dead(self, job_id: UUID) -> DeadLetter:
        """Return a dead letter."""
        return DeadLetter.objects.using(self.store.alias).get(pk=job_id)

    def failures(self, job_id: UUID) -> list[Failure]:
        """Return the failures of a job, first to last."""
        return list(Failure.objects.using(self.store.alias).filter(job_id=job_id).order_by("id"))

    def finished(self, job_id: UUID) -> FinishedJob:
        """Return a finished job."""
        return FinishedJob.objects.using(self.store.alias).get(pk=job_id)

    def places(self, job_id: UUID) -> list[str]:
        """Return where a job is: ``live``, ``finished``, ``dead``. More than one, or none, is a fault."""
        tables = {"live": Job.objects, "finished": FinishedJob.objects, "dead": DeadLetter.objects}
        return [place for place, rows in tables.items() if rows.using(self.store.alias).filter(pk=job_id).exists()]


def _job(job_id: UUID, **columns: Any) -> Job:
    return Job(**{"id": job_id, "queue": QUEUE, "task": "conformance.tasks.work"} | columns)
