"""What a job that ``drain`` runs reaches out by: the rows themselves, on the test's own connection."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async

from ..domain.outcomes import ClaimedJob
from ..lifecycle.claim import keep
from ..store import Store


class DirectLink:
    """
    The link of one attempt. What a function reports is stored when it goes on; what a coroutine does, when it awaits.

    A coroutine cannot read rows without awaiting: ``cancelled`` is what its last ``aheartbeat`` said.
    """

    def __init__(self, store: Store, job: ClaimedJob) -> None:
        self._store = store
        self._job = job
        self._to_cancel = False
        self._reports: set[asyncio.Future[bool]] = set()

    @property
    def cancelled(self) -> bool:
        """Whether the job is to be cancelled."""
        if not _in_loop():
            requests = self._store.cancel_requests([self._job.lease_id])
            self._to_cancel = any(each.job_id == self._job.id for each in requests)
        return self._to_cancel

    def heartbeat(self) -> bool:
        """Renew the lease, and return whether the job is to be cancelled."""
        self._to_cancel = keep(self._store, self._job)
        return self._to_cancel

    async def aheartbeat(self) -> bool:
        """See heartbeat."""
        return await sync_to_async(self.heartbeat)()

    def report(self, progress: str) -> None:
        """Store the progress."""
        if _in_loop():
            note = sync_to_async(self._store.note_progress)(self._job.id, self._job.lease_id, progress)
            # A loop forgets what nobody refers to.
            self._reports.add(asyncio.ensure_future(note))
        else:
            self._store.note_progress(self._job.id, self._job.lease_id, progress)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
