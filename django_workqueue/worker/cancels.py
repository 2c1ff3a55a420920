"""Which running jobs are to be cancelled, as the database says, and passing it on to them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from uuid import UUID

from ..domain.outcomes import ClaimedJob
from ..store.cancel import CancelRequest
from .grip import Grip


class Cancels:
    """Written by the heartbeat, which reads the requests; asked by executors and by running jobs."""

    def __init__(self, grips: Sequence[Grip]) -> None:
        self._grips = grips
        self._calls = threading.Event()
        self.asked: dict[tuple[UUID, int], bool] = {}
        """By force or not, for each job and the lease under which it runs: requeued, it is to be cancelled no more."""

    def includes(self, job: ClaimedJob) -> bool:
        """Whether this attempt is to be cancelled."""
        return bool(self.asked) and (job.id, job.lease_id) in self.asked

    def call(self) -> None:
        """Note that there may be new requests. Called by whoever heard so."""
        self._calls.set()

    def was_called(self) -> bool:
        """Whether there may be new requests since the last time that this was asked."""
        called = self._calls.is_set()
        self._calls.clear()
        return called

    def replace(self, requests: Iterable[CancelRequest]) -> None:
        """Take these for all that there are, and pass them on to what runs. Safe to repeat."""
        self.asked = {(each.job_id, each.lease_id): each.force for each in requests}
        for grip in self._grips if self.asked else ():
            call = grip.call
            if call is not None and self.includes(call.job):
                grip.cancel(call, force=self.asked[call.job.id, call.job.lease_id])
