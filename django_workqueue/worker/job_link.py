"""What a running job reaches its worker by, through its JobContext."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async

from ..domain.outcomes import ClaimedJob
from ..exceptions import QueueUnavailableError
from ..lifecycle.claim import keep
from ..store import Store
from .cancels import Cancels
from .errands import Errands

ANSWER_SECONDS = 35.0
"""Longer than a worker's statement may take."""


class WorkerLink:
    """The link of one attempt."""

    def __init__(self, job: ClaimedJob, store: Store, errands: Errands, cancels: Cancels) -> None:
        self._job = job
        self._store = store
        self._errands = errands
        self._cancels = cancels

    @property
    def cancelled(self) -> bool:
        """Whether the job is to be cancelled, as far as the worker has heard."""
        return self._cancels.includes(self._job)

    def heartbeat(self) -> bool:
        """Renew the lease, and return whether the job is to be cancelled."""
        if self._store.has_one_writer:
            # A transaction of the job's own would keep the heartbeat's connection out until it ends.
            with self._store.reachable("renew the lease"):
                return keep(self._store, self._job)
        try:
            return self._errands.renew(self._job).result(ANSWER_SECONDS)
        except TimeoutError as error:
            raise self._no_answer() from error

    async def aheartbeat(self) -> bool:
        """See heartbeat."""
        if self._store.has_one_writer:
            return await sync_to_async(self.heartbeat)()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._errands.renew(self._job)), ANSWER_SECONDS)
        except TimeoutError as error:
            raise self._no_answer() from error

    def _no_answer(self) -> QueueUnavailableError:
        return QueueUnavailableError("renew the lease", self._store.alias)

    def report(self, progress: str) -> None:
        """Have the progress stored."""
        self._errands.report(self._job, progress)
