"""The ledger of steps: begin, record, doubt and free, each by the id that a begin was given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from ..domain.ids import new_id
from ..domain.states import StepState
from ..models import DeadLetter, Job, Lease, Step
from .base import BaseStore


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """A step as an attempt wants to begin it."""

    tenant: str
    key: str
    digest: str
    job_id: UUID
    name: str
    worker: str
    lease_id: int | None
    """The lease under which the attempt runs; None where it runs under none."""
    retention: timedelta


class Stepping(BaseStore):
    """The statements of the ledger. Outside a transaction each is committed when it returns."""

    def begin_step(self, asked: StepRequest) -> tuple[Step, bool]:
        """
        Store the step unless its key is taken. Returns the row that has the key, and whether that is the new one.

        Of any number of callers at once, one is answered True.
        """
        while True:
            mine = self._new_step(asked)
            self._steps().bulk_create([mine], ignore_conflicts=True)
            # The one that was in the way may have been freed between the two statements.
            if (found := self.step(asked.tenant, asked.key)) is not None:
                return found, found.pk == mine.pk

    def begin_step_again(self, unknown: Step, asked: StepRequest) -> tuple[Step, bool]:
        """Put a new begin in the place of one that will have no outcome. Of several callers one is answered True."""
        with self.transaction():
            self.free_step(unknown.pk)
            return self.begin_step(asked)

    def record_step(self, step_id: UUID, outcome: str, *, retention: timedelta) -> bool:
        """Store the outcome. False, and nothing is changed, when there is one already or the begin is not there."""
        return bool(
            self._steps()
            .filter(pk=step_id, outcome="")
            .update(state=StepState.DONE, outcome=outcome, done_at=self.clock(), expires_at=self.clock() + retention)
        )

    def doubt_step(self, step_id: UUID) -> bool:
        """Note that whether the effect happened is not known. False when the step is done or not there."""
        return bool(self._open(step_id).update(state=StepState.UNKNOWN))

    def free_step(self, step_id: UUID) -> bool:
        """Forget a begin, so that the step may be begun anew. False when it is done or not there."""
        return bool(self._open(step_id).delete()[0])

    def step(self, tenant: str, key: str) -> Step | None:
        """Return the step that has the key."""
        return self._steps().filter(tenant=tenant, key=key).first()

    def steps_of(self, job_id: UUID) -> QuerySet[Step]:
        """Return the steps of a job, in the order of their begins."""
        return self._steps().filter(job_id=job_id).order_by("begun_at", "pk")

    def held_for(self, job_id: UUID, lease_id: int | None) -> timedelta | None:
        """Return how long the lease holds the job from now; None when it does not hold it."""
        if lease_id is None:
            return None
        alive = Lease.objects.using(self.alias).filter(pk=lease_id, expires_at__gt=self.clock(), jobs__pk=job_id)
        expires_at = alive.values_list("expires_at", flat=True).first()
        return None if expires_at is None else max(expires_at - self.now(), timedelta())

    # -- steps ---------------------------------------------------------------------------------------------------

    def _steps(self) -> QuerySet[Step]:
        return Step.objects.using(self.alias)

    def _open(self, step_id: UUID) -> QuerySet[Step]:
        return self._steps().filter(pk=step_id).exclude(state=StepState.DONE)

    def _new_step(self, asked: StepRequest) -> Step:
        return Step(
            id=new_id(),
            tenant=asked.tenant,
            key=asked.key,
            digest=asked.digest,
            job_id=asked.job_id,
            name=asked.name,
            worker=asked.worker,
            lease_id=asked.lease_id,
            begun_at=self.clock(),
            expires_at=self.clock() + asked.retention,
        )

    def _old_steps(self, *, needed: bool) -> QuerySet[Step]:
        """Return the steps whose time is over, of jobs that may run again (``needed``) or of all others."""
        live = Job.objects.using(self.alias).filter(pk=OuterRef("job_id"))
        dead = DeadLetter.objects.using(self.alias).filter(pk=OuterRef("job_id"))
        over = self._steps().filter(expires_at__lte=self.clock()).order_by("expires_at")
        may_run_again = Exists(live) | Exists(dead)
        return over.filter(may_run_again if needed else ~may_run_again)

    def _prune_steps(self, batch: int, retention: timedelta) -> int:
        """Delete up to ``batch`` old steps. Those that are needed get another term, so as not to be looked at again."""
        with self.transaction():
            needed = list(self._unheld(self._old_steps(needed=True)).values_list("pk", flat=True)[:batch])
            self._steps().filter(pk__in=needed).update(expires_at=self.clock() + retention)
            ids = list(self._unheld(self._old_steps(needed=False)).values_list("pk", flat=True)[:batch])
            return self._steps().filter(pk__in=ids).delete()[0]
