"""Manage worker processes: quiet, back to work, stop; and forget one that is gone. Part of ``operate``."""

from __future__ import annotations

import logging
from datetime import timedelta

from ..conf import get_settings
from ..exceptions import WorkerNotFoundError, WorkerRequestError
from ..models import Worker
from ..models.base import BY_LENGTH
from ..models.worker import WorkerRequest
from ..store import Store, store_for
from .enqueue import check_text

logger = logging.getLogger("django_workqueue.operate")


def silence() -> timedelta:
    """Return how long a worker may go unseen and still count as alive: three beats and a little."""
    return get_settings().beat * 3 + timedelta(seconds=1)


def ask_worker(name: str, request: str, *, by: str, database: str | None = None) -> Worker:
    """
    Ask a live worker, by name or id, to do one of WorkerRequest: "work", "quiet" or "stop". Return its row of before.

    It finds the request at its next beat, a third of a lease away at most. A quiet one claims nothing more, finishes
    what it has, and goes on with keeping the queue in order until it is asked to "work" again. One that is asked to
    "stop" does as at a first SIGTERM. Raises WorkerNotFoundError, WorkerRequestError when it is silent or was asked to
    stop before, and ValueError for another request.
    """
    wanted = WorkerRequest(request)
    check_text("by", by, BY_LENGTH)
    store = store_for(database)
    worker, is_silent = _found(store, name)
    if is_silent:
        raise WorkerRequestError(name, "has gone silent, and would not hear of it. If it is gone for good, forget it.")
    if not store.ask_worker(worker.pk, wanted.value, by=by):
        raise WorkerRequestError(name, "was asked to stop before, and may be about to.")
    logger.warning("Worker %s was asked by %s to: %s.", worker.pk, by, wanted.value, extra={"worker": worker.pk})
    return worker


def forget_worker(name: str, *, by: str, database: str | None = None) -> Worker:
    """
    Remove and return a silent worker's row, by name or id, and let its leases lapse at once.

    Its jobs come back within seconds, their attempts counted, as soon as a worker lives to reap them. What it might
    still do is refused. Raises WorkerNotFoundError, and WorkerRequestError while it is alive.
    """
    check_text("by", by, BY_LENGTH)
    store = store_for(database)
    worker, _ = _found(store, name)
    if not store.forget_worker(worker.pk, silence()):
        raise WorkerRequestError(name, "is alive. Ask it to stop instead.")
    logger.warning("Worker %s was forgotten by %s.", worker.pk, by, extra={"worker": worker.pk})
    return worker


def _found(store: Store, name: str) -> tuple[Worker, bool]:
    """Return the worker of this name or id, and whether it is silent."""
    rows = Worker.objects.using(store.alias)
    worker = rows.filter(name=name).first() or rows.filter(pk=name).first()
    if worker is None:
        raise WorkerNotFoundError(name)
    return worker, store.now() - worker.seen_at >= silence()
