"""Change when, where and how soon waiting jobs run. Part of ``operate``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from ..domain.limits import LimitedKey
from ..domain.scope import Tenants
from ..domain.states import JobState
from ..exceptions import DuplicateJobError, InvalidJobError
from ..models import Job
from ..models.base import NAME_LENGTH
from ..store import Store, store_for
from .dead_letters import Refusal
from .enqueue import check_text, queue_name, whole
from .limits import admit_on_commit, keys_of
from .wake import wake

logger = logging.getLogger("django_workqueue.operate")


@dataclass(slots=True)
class Moved:
    """What became of a request to let jobs run now, elsewhere or sooner."""

    job_ids: list[UUID] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


def run_now(ids: Iterable[UUID], *, tenant: Tenants = None, database: str | None = None) -> Moved:
    """
    Make scheduled jobs due at once: those put off by ``run_after`` and those that wait for their next try.

    Each is a transaction of its own; one that is not scheduled is refused by name and does not stop the others. With
    ``tenant``, those of others are not found.
    """
    store, done = store_for(database), Moved()
    for job_id in ids:
        job = store.run_now(job_id, tenant=tenant)
        if job is None:
            problem = f"Job {job_id} is not scheduled: it is due already, runs, is over, or is not here."
            done.refused.append(Refusal(job_id, problem))
            continue
        done.job_ids.append(job_id)
        _announce(store, job, "Job %s of %s was made due at once.")
    return done


def move(
    ids: Iterable[UUID],
    *,
    queue: str | None = None,
    priority: int | None = None,
    tenant: Tenants = None,
    database: str | None = None,
) -> Moved:
    """
    Give waiting jobs another queue or priority. They keep their time, their keys and their attempts.

    Each is a transaction of its own; one that a worker holds, or whose dedupe key is taken in that queue, is refused by
    name and does not stop the others. With ``tenant``, those of others are not found. Raises InvalidJobError for what
    is no name of a queue, for a priority that is not from -100 to 100, and when neither is given.
    """
    queue = _checked(queue, priority)
    store, done = store_for(database), Moved()
    for job_id in ids:
        try:
            was = store.move(job_id, queue=queue, priority=priority, tenant=tenant)
        except DuplicateJobError as error:
            done.refused.append(Refusal(job_id, str(error)))
            continue
        if was is None:
            problem = f"Job {job_id} does not wait: a worker holds it, it is over, or it is not here."
            done.refused.append(Refusal(job_id, problem))
            continue
        done.job_ids.append(job_id)
        _let_go(store, was, queue)
    return done


def _checked(queue: str | None, priority: int | None) -> str | None:
    if queue is None and priority is None:
        raise InvalidJobError("Neither queue nor priority is given. Name the one that shall change.")
    if priority is not None:
        whole("priority", priority, -100, 100)
    if queue is None:
        return None
    name = queue_name(queue)
    check_text("queue", name, NAME_LENGTH)
    return name


def _let_go(store: Store, was: Job, queue: str | None) -> None:
    """Wake whoever may run the job now, and let another have the slot that it leaves behind."""
    left: set[LimitedKey] = set()
    if queue not in {None, was.queue} and was.concurrency_key is not None:
        left = {(was.queue, was.tenant, was.concurrency_key)}
        was.state = JobState.BLOCKED if was.state == JobState.READY else JobState(was.state)
    was.queue = queue or was.queue
    _announce(store, was, "Job %s of %s was moved.")
    admit_on_commit(store, left)


def _announce(store: Store, job: Job, what: str) -> None:
    logger.info(what, job.pk, job.task, extra={"job_id": str(job.pk), "task": job.task, "queue": job.queue})
    if job.state == JobState.READY:
        wake(store, {(job.queue, job.tenant)})
    admit_on_commit(store, keys_of([job]))
