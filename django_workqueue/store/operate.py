"""What people do to rows: put back, discard; and the cleaning that keeps tables small."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db.models import F, Model, Q, QuerySet, Value

from ..domain.encoding import decode, encode
from ..domain.scope import Scope, Tenants
from ..domain.states import JobState
from ..exceptions import DuplicateJobError, JobNotFoundError
from ..models import (
    DeadLetter,
    Failure,
    FinishedJob,
    Firing,
    Job,
    Lease,
    Pause,
    Queue,
    Schedule,
    Step,
    Worker,
    Workflow,
)
from .rollups import Rollups
from .settle import copied
from .steps import Stepping
from .workflows import Flowing

MOST_ATTEMPTS = 32767
"""What the columns that count attempts can hold."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows cleaning removed, or would remove."""

    finished: int = 0
    dead: int = 0
    workers: int = 0
    minutes: int = 0
    workflows: int = 0
    steps: int = 0
    folded: int = 0
    """Rollups of minutes that were added to those of their hours."""

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            self.finished + other.finished,
            self.dead + other.dead,
            self.workers + other.workers,
            self.minutes + other.minutes,
            self.workflows + other.workflows,
            self.steps + other.steps,
            self.folded + other.folded,
        )

    @property
    def total(self) -> int:
        """All of them."""
        return self.finished + self.dead + self.workers + self.minutes + self.workflows + self.steps + self.folded


class Operating(Flowing, Stepping, Rollups):
    """Deliberate acts on single rows, and pruning in small batches."""

    def requeue(
        self,
        job_id: UUID,
        *,
        attempts: int,
        tenant: Tenants = None,
        after: timedelta | None = None,
        changes: Mapping[str, Any] = MappingProxyType({}),
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> Job:
        """
        Put a dead letter back as a ready or blocked job with ``attempts`` further tries; id, history and key stay.

        ``after`` makes it scheduled instead, to be due then; ``changes`` are columns that it shall have otherwise, and
        ``notes`` are added to its metadata. With ``tenant``, another tenant's is not found. Raises JobNotFoundError, or
        DuplicateJobError when a live job has the same id or dedupe key.
        """
        with self.transaction():
            letters = self._dead_letters(job_id, tenant)
            self.lock_workflows(letters.values_list("workflow", flat=True))
            if self.connection.features.has_select_for_update:
                letters = letters.select_for_update()
            letter = letters.first()
            if letter is None:
                raise JobNotFoundError(job_id)
            # What a row can count ends somewhere; the further tries are what was asked for.
            used = min(letter.attempts, MOST_ATTEMPTS - attempts)
            counts = {"attempts": used, "max_attempts": used + attempts}
            now = self.now()
            due = {"ready_at": now + (after or timedelta()), "state": _state_of(letter, after)}
            job = Job(**copied(letter) | counts | due | dict(changes))
            job.metadata = _noted(job.metadata, notes)
            if job.dedupe_expires_at is not None and job.dedupe_expires_at <= now:
                job.dedupe_key = job.dedupe_expires_at = None
            self._insert_unless_live(job)
            letters.delete()
            self.revive_member(job)
        return job

    def _dead_letters(self, job_id: UUID, tenant: Tenants) -> QuerySet[DeadLetter]:
        return Scope.of(tenant).apply(DeadLetter.objects.using(self.alias).filter(pk=job_id))

    def _insert_unless_live(self, job: Job) -> None:
        """Insert without breaking the transaction on a clash, and tell a clash by the row that is there afterwards."""
        clash = Q(pk=job.pk)
        if job.dedupe_key is not None:
            self._unexpired(self._holders([job]))
            free = Q(dedupe_until_start=True, state=JobState.LEASED)
            clash |= Q(queue=job.queue, tenant=job.tenant, dedupe_key=job.dedupe_key) & ~free
        holder = Job.objects.using(self.alias).filter(clash).values_list("pk", flat=True).first()
        if holder is None:
            Job.objects.using(self.alias).bulk_create([job], ignore_conflicts=True)
            if Job.objects.using(self.alias).filter(pk=job.pk).exists():
                return
            holder = Job.objects.using(self.alias).filter(clash).values_list("pk", flat=True).first()
        raise DuplicateJobError(job.pk, holder)

    def acknowledge(self, job_id: UUID, *, by: str, note: str, tenant: Tenants = None) -> None:
        """Note on a dead letter who has seen it; the latest note stays. Raises JobNotFoundError."""
        seen = {"acknowledged_at": self.now(), "acknowledged_by": by, "note": note}
        if not self._dead_letters(job_id, tenant).update(**seen):
            raise JobNotFoundError(job_id)

    def discard(self, job_id: UUID, *, tenant: Tenants = None) -> None:
        """Delete a dead letter with its failures, unless it is not ``tenant``'s. Raises JobNotFoundError."""
        with self.transaction():
            deleted, _ = self._dead_letters(job_id, tenant).delete()
            if not deleted:
                raise JobNotFoundError(job_id)
            Failure.objects.using(self.alias).filter(job_id=job_id).delete()

    def prune(
        self,
        *,
        batch: int,
        dead_retention: timedelta | None,
        statistics_retention: timedelta,
        step_retention: timedelta = timedelta(days=7),
    ) -> Pruned:
        """
        Delete up to ``batch`` rows of each kind whose time is over. Call it until ``total`` is 0.

        A step of a live job or of a dead letter stays, for ``step_retention`` more: the job may run again.
        """
        return Pruned(
            finished=self._prune_jobs(self._old_finished(), batch),
            dead=self._prune_jobs(self._old_dead(dead_retention), batch) if dead_retention else 0,
            workers=self._old_workers().delete()[0],
            minutes=self._prune_minutes(self._old_minutes(statistics_retention), batch),
            workflows=self.prune_workflows(batch),
            steps=self._prune_steps(batch, step_retention),
            folded=self._fold_minutes(batch, statistics_retention),
        )

    def prunable(self, *, cap: int, dead_retention: timedelta | None, statistics_retention: timedelta) -> Pruned:
        """Count what ``prune`` would delete by now, up to ``cap`` rows of each kind."""
        return Pruned(
            finished=self._old_finished()[:cap].count(),
            dead=self._old_dead(dead_retention)[:cap].count() if dead_retention else 0,
            workers=self._old_workers()[:cap].count(),
            minutes=self._old_minutes(statistics_retention)[:cap].count(),
            workflows=self.old_workflows()[:cap].count(),
            steps=self._old_steps(needed=False)[:cap].count(),
            folded=self._long_over(statistics_retention)[:cap].count(),
        )

    def _old_finished(self) -> QuerySet[FinishedJob]:
        return FinishedJob.objects.using(self.alias).filter(expires_at__lte=self.clock()).order_by("expires_at")

    def _old_dead(self, retention: timedelta) -> QuerySet[DeadLetter]:
        return DeadLetter.objects.using(self.alias).filter(died_at__lte=self.now() - retention).order_by("died_at")

    def _old_workers(self) -> QuerySet[Worker]:
        return Worker.objects.using(self.alias).filter(seen_at__lt=self.now() - timedelta(days=1))

    def _prune_jobs(self, over: QuerySet[Any], batch: int) -> int:
        """
        Delete by id, never by a wide condition: the lock and the statement stay short however much there is.

        A row that somebody holds, enqueueing its id anew say, is left for the next round instead of waited for.
        """
        with self.transaction():
            ids = list(self._unheld(over).values_list("pk", flat=True)[:batch])
            if not ids:
                return 0
            count: int = over.model._default_manager.using(self.alias).filter(pk__in=ids).delete()[0]
            again = set(Job.objects.using(self.alias).filter(pk__in=ids).values_list("pk", flat=True))
            Failure.objects.using(self.alias).filter(job_id__in=[pk for pk in ids if pk not in again]).delete()
        return count

    def shift(self, seconds: float) -> None:
        """
        Move every stored time of live work back by ``seconds``, as if so much time had passed. For tests.

        The database's clock cannot be set; what it is compared with can.
        """
        step = Value(timedelta(seconds=seconds))
        with self.transaction():
            for model, columns in SHIFTED.items():
                changes = {name: F(name) - step for name in columns}
                model._default_manager.using(self.alias).update(**changes)
            # Unlike a job's, a schedule's time is one of the calendar: which it was is not forgotten.
            Schedule.objects.using(self.alias).update(skew=F("skew") + step)


def _noted(metadata: str, notes: Mapping[str, str]) -> str:
    """Return stored metadata with ``notes``; as they are where they cannot be read, for the attempt to say so."""
    try:
        return encode({**decode(metadata, dict), **notes}, "metadata", sys.maxsize) if notes else metadata
    except ValueError:
        return metadata


def _state_of(letter: DeadLetter, after: timedelta | None) -> JobState:
    if after:
        return JobState.SCHEDULED
    return JobState.READY if letter.concurrency_key is None else JobState.BLOCKED


SHIFTED: dict[type[Model], tuple[str, ...]] = {
    Lease: ("acquired_at", "renewed_at", "expires_at", "deadline_at"),
    Job: ("enqueued_at", "ready_at", "dedupe_expires_at"),
    Queue: ("window_started_at",),
    Pause: ("paused_at",),
    FinishedJob: ("enqueued_at", "started_at", "finished_at", "expires_at", "dedupe_expires_at"),
    DeadLetter: ("enqueued_at", "died_at", "acknowledged_at", "dedupe_expires_at"),
    Failure: ("started_at", "failed_at", "next_try_at"),
    Schedule: ("next_at",),
    Firing: ("due_at", "fired_at"),
    Worker: ("started_at", "seen_at"),
    Workflow: ("enqueued_at", "ended_at", "expires_at"),
    Step: ("begun_at", "done_at", "expires_at"),
}
