"""Atomic: a body and the record of its success in one transaction, and a commit that gives no answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ..domain.outcomes import ClaimedJob, Succeeded
from ..store import Store
from .events import job_fields

logger = logging.getLogger("django_workqueue.run")


@dataclass(slots=True)
class _Progress:
    """How far the transaction came: nothing, up to its commit, or past it."""

    success: Succeeded | None = None
    is_committed: bool = False

    def note_commit(self) -> None:
        self.is_committed = True


def atomically(
    store: Store,
    job: ClaimedJob,
    body: Callable[[], Succeeded],
    within: Callable[[], AbstractContextManager[None]],
) -> tuple[Succeeded, BaseException | None]:
    """
    Call ``body``, which also records what it returns, in one transaction on the queue's database, inside ``within``.

    Returns the success, with the error by which the commit ended where that does not tell whether it went through.
    Raises what ``body`` raises; then all is rolled back. What a callback for after the commit raises is logged: it
    cannot undo the job any more.
    """
    progress = _Progress()
    try:
        with within():
            with store.writing():
                # Before any callback of the body's, so that one which raises is not taken for a commit that failed.
                store.on_commit(progress.note_commit)
                progress.success = body()
            progress.note_commit()
    except BaseException as error:
        if progress.success is None:
            raise
        if progress.is_committed:
            logger.exception("A callback after the commit of job %s failed.", job.id, extra=job_fields(job))
            return progress.success, None
        # The class alone: databases quote the row, with the job's arguments in it.
        name = type(error).__name__
        logger.warning("The commit of job %s gave no answer: %s.", job.id, name, extra=job_fields(job))
        return progress.success, error
    return progress.success, None
