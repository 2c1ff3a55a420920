"""Cancel: take a job out. One that waits is over at once; one that runs is asked to end, and its worker told."""

from __future__ import annotations

import logging
from functools import partial
from uuid import UUID

from django.db import Error

from ..domain.contract import task_finished
from ..domain.registry import resolve
from ..domain.scope import Tenants
from ..exceptions import TaskNotRegisteredError
from ..models import Failure, FinishedJob, Job
from ..store import Store
from ..store.settle import GivenBack
from ..store.watch import QueueCounts
from .events import announce, is_listened_to
from .limits import admit
from .results import of_finished

logger = logging.getLogger("django_workqueue.cancel")


def cancel(store: Store, job_id: UUID, *, force: bool = False, tenant: Tenants = None) -> FinishedJob | Job | None:
    """
    Cancel one live job.

    Returns the finished job if it waited, the live one if it runs and has been asked to end, and None when there is
    none, with ``tenant`` none of its. Others hear of it once the caller's transaction is committed.
    """
    found = store.cancel(job_id, force=force, tenant=tenant)
    if isinstance(found, FinishedJob):
        tell_cancelled(store, GivenBack({found.pk}, [found]))
    elif found is not None and (lease_id := found.lease_id) is not None:
        _log(found, "Job %s of %s is to be cancelled; it runs.")
        store.on_commit(lambda: _call(store, lease_id))
    return found


def tell_cancelled(store: Store, given_back: GivenBack) -> set[UUID]:
    """Tell of jobs that were cancelled as they came back, once that is committed. Returns the ids of all that did."""
    for job in given_back.cancelled:
        _log(job, "Job %s of %s was cancelled.")
        store.on_commit(partial(_tell, store, job))
    return given_back.ids


def _log(job: FinishedJob | Job, what: str) -> None:
    fields = {"job_id": str(job.pk), "task": job.task, "queue": job.queue, "tenant": job.tenant}
    logger.info(what, job.pk, job.task, extra=fields)


def _tell(store: Store, job: FinishedJob) -> None:
    """Count the job, let another have its slot, and announce its end."""
    if job.concurrency_key is not None:
        admit(store, {(job.queue, job.tenant, job.concurrency_key)})
    store.add_counts({job.queue: QueueCounts(cancelled=1)})
    if not is_listened_to(task_finished):
        return
    try:
        task = resolve(job.task)
    except TaskNotRegisteredError:
        return
    failures = list(Failure.objects.using(store.alias).filter(job_id=job.pk).order_by("id"))
    announce(task_finished, task, lambda: of_finished(job, task, task.backend, failures))


def _call(store: Store, lease_id: int) -> None:
    """Wake the worker. A failure is logged only: it looks by itself, about once a second."""
    try:
        store.call_to_cancel([lease_id])
    except Error:
        logger.warning("Could not tell the worker; it finds the request when it looks.", exc_info=True)
