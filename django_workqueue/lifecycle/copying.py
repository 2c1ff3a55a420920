"""Enqueue jobs that are over once more, as new jobs. Part of ``operate``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid5

from ..domain.context import COPY_OF
from ..domain.contract import TaskResultDoesNotExist
from ..domain.registry import check_fit, resolve
from ..domain.scope import Scope, Tenants
from ..exceptions import InvalidJobError, JobNotFoundError, WorkQueueError
from ..models import DeadLetter, FinishedJob
from ..store import Store, store_for
from .dead_letters import Refusal
from .enqueue import JobRequest, enqueue
from .results import find

logger = logging.getLogger("django_workqueue.operate")


@dataclass(slots=True)
class Copied:
    """What became of a request to enqueue copies."""

    copies: dict[UUID, UUID] = field(default_factory=dict)
    """The id of each new job, by the id of the one that it is a copy of."""
    refused: list[Refusal] = field(default_factory=list)


def copy(
    ids: Iterable[UUID], *, seed: UUID | None = None, tenant: Tenants = None, database: str | None = None
) -> Copied:
    """
    Enqueue a new job for each finished job and dead letter, ready at once; what it is a copy of stays as it is.

    A copy has task, arguments, queue, tenant, priority, attempts allowed, concurrency key and metadata of the other,
    and its metadata says of what it is a copy; hooks see it as any new job. Its dedupe key is not copied, and it is in
    no workflow. With ``seed``, ids are made of it: who asks twice with the same is refused the second time.

    Each is a transaction of its own; one that cannot be enqueued is refused by name and does not stop the others. With
    ``tenant``, those of others are not found.
    """
    store, done = store_for(database), Copied()
    for job_id in ids:
        try:
            with store.transaction():
                done.copies[job_id] = _copy(store, job_id, None if seed is None else uuid5(seed, str(job_id)), tenant)
        except (WorkQueueError, ValueError) as error:
            done.refused.append(Refusal(job_id, str(error)))
    return done


def _copy(store: Store, job_id: UUID, new_id: UUID | None, tenant: Tenants) -> UUID:
    over = _over(store, job_id, tenant)
    request = _request(over, new_id)
    task = resolve(over.task)
    check_fit(task, request.args, request.kwargs)
    if new_id is not None and _is_known(store, new_id):
        raise InvalidJobError(f"Job {job_id} was copied already: job {new_id}.")
    (stored,) = enqueue([request], database=store.alias, permitted_queues=task.get_backend().queues)
    if stored.duplicate:
        raise InvalidJobError(f"Job {job_id} was copied already: job {stored.job.pk}.")
    fields = {"job_id": str(stored.job.pk), "task": over.task, "copy_of": str(job_id)}
    logger.info("Job %s of %s was enqueued as a copy of %s.", stored.job.pk, over.task, job_id, extra=fields)
    return stored.job.pk


def _over(store: Store, job_id: UUID, tenant: Tenants) -> FinishedJob | DeadLetter:
    for rows in (FinishedJob.objects, DeadLetter.objects):
        found: Any = Scope.of(tenant).apply(rows.using(store.alias).filter(pk=job_id)).first()
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise JobNotFoundError(job_id)


def _request(over: FinishedJob | DeadLetter, new_id: UUID | None) -> JobRequest:
    """Return the job as its caller would ask for it again. Raises ValueError where the stored text is no JSON."""
    return JobRequest(
        task=over.task,
        args=over.decoded_args,
        kwargs=over.decoded_kwargs,
        job_id=new_id,
        queue=over.queue,
        tenant=over.tenant,
        priority=over.priority,
        max_attempts=over.max_attempts,
        concurrency_key=over.concurrency_key,
        concurrency_limit=over.concurrency_limit or 1,
        # What the queue itself has noted is not the caller's.
        metadata={key: value for key, value in over.decoded_metadata.items() if not key.startswith("_")},
        marks={COPY_OF: str(over.pk)},
    )


def _is_known(store: Store, job_id: UUID) -> bool:
    try:
        find(store, job_id)
    except TaskResultDoesNotExist:
        return False
    return True
