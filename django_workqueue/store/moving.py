"""Changing when, where and how soon a waiting job runs, fenced against whoever claims it meanwhile."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import IntegrityError

from ..domain.scope import Scope, Tenants
from ..domain.states import JobState
from ..exceptions import DuplicateJobError
from ..models import Job
from ..models.job import JobQuerySet
from .limits import Limiting
from .pauses import READY_OR_BLOCKED


class Moving(Limiting):
    """What people change of jobs that no worker holds."""

    def run_now(self, job_id: UUID, *, tenant: Tenants = None) -> Job | None:
        """
        Make a scheduled job ready, or blocked where its concurrency key has its say, as if it were due at this moment.

        Returns it, or None when no such job is scheduled, with ``tenant`` none of its.
        """
        with self.transaction():
            scheduled = self._one(job_id, tenant).scheduled()
            if not scheduled.update(state=READY_OR_BLOCKED, ready_at=self.clock()):
                return None
            return self._one(job_id, tenant).first()

    def move(
        self, job_id: UUID, *, queue: str | None = None, priority: int | None = None, tenant: Tenants = None
    ) -> Job | None:
        """
        Give a job that no worker holds another queue or priority, and return it as it was.

        It keeps its time. One that was admitted for its concurrency key waits for a slot of that key in the new queue.
        Returns None when no such job waits, with ``tenant`` none of its: waits for whoever claims it at this
        moment. Raises DuplicateJobError when its dedupe key is taken in the new queue.
        """
        with self.writing():
            waiting = self._one(job_id, tenant).filter(lease__isnull=True)
            locked = waiting.select_for_update() if self.connection.features.has_select_for_update else waiting
            job = locked.first()
            if job is None:
                return None
            changes: dict[str, Any] = {} if priority is None else {"priority": priority}
            if queue is not None and queue != job.queue:
                changes |= {"queue": queue} | self._key_in(queue, job) | _state_in_another_queue(job)
            self._change(job, changes)
        return job

    def _one(self, job_id: UUID, tenant: Tenants) -> JobQuerySet:
        return Scope.of(tenant).apply(Job.objects.using(self.alias).filter(pk=job_id))

    def _key_in(self, queue: str, job: Job) -> dict[str, Any]:
        """Return what becomes of a job's dedupe key in another queue. Raises DuplicateJobError where it is taken."""
        if job.dedupe_key is None:
            return {}
        if job.dedupe_expires_at is not None and job.dedupe_expires_at <= self.now():
            return {"dedupe_key": None, "dedupe_expires_at": None}
        if holder := self._holder(queue, job):
            raise DuplicateJobError(job.pk, holder.pk)
        return {}

    def _holder(self, queue: str, job: Job) -> Job | None:
        there = Job(queue=queue, tenant=job.tenant, dedupe_key=job.dedupe_key)
        return next(iter(self._unexpired(self._holders([there])).values()), None)

    def _change(self, job: Job, changes: dict[str, Any]) -> None:
        """Write the changes. Of a key that was taken a moment ago, by who has not committed, only a clash tells."""
        if not changes:
            return
        try:
            with self.transaction():
                self._one(job.pk, None).update(**changes)
        except IntegrityError as error:
            holder = self._holder(changes.get("queue", job.queue), job)
            raise DuplicateJobError(job.pk, holder and holder.pk) from error


def _state_in_another_queue(job: Job) -> dict[str, Any]:
    """Slots are counted for each queue: one that was let go in the old has yet to be in the new."""
    is_admitted = job.state == JobState.READY and job.concurrency_key is not None
    return {"state": JobState.BLOCKED} if is_admitted else {}
