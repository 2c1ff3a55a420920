"""The heartbeat: renews the leases with work in hand and says that the worker is alive."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from uuid import UUID

from django.db import Error

from ..conf import get_settings
from ..domain.outcomes import ClaimedJob
from ..exceptions import QueueUnavailableError
from ..lifecycle.claim import keep, renew
from ..models import Worker
from ..models.base import NAME_LENGTH
from ..store import Store
from ..store.watch import Beat
from .cancels import Cancels
from .errands import Errands
from .held import HeldLeases
from .shutdown import StopRequest
from .thread import Backoff, WorkerThread, log_failure

logger = logging.getLogger("django_workqueue.worker")

LOOK_SECONDS = 1.0
"""How often a worker looks whether its jobs are to be cancelled, while one has run for longer than that."""


class Heartbeat(WorkerThread):
    """Beats until it is ended, also while the worker drains: running jobs still need their leases."""

    def __init__(
        self,
        *,
        store: Store,
        row: Callable[[], Worker],
        held: HeldLeases,
        report: Callable[[], Beat],
        errands: Errands,
        cancels: Cancels,
        heed: Callable[[str], bool],
        longest_run: Callable[[], float],
        ended: StopRequest,
        on_crash: Callable[[], None],
    ) -> None:
        super().__init__("heartbeat", on_crash)
        self._store = store
        self._row = row
        self._held = held
        self._report = report
        self._errands = errands
        self._cancels = cancels
        self._heed = heed
        self._longest_run = longest_run
        self._ended = ended
        self._beat_at = self._look_at = 0.0

    def work(self) -> None:
        """Beat every third of the lease; after an error sooner, as the leases run out meanwhile."""
        backoff = Backoff()
        self._beat_at = time.monotonic() + get_settings().beat.total_seconds()
        while not self._ended.requested:
            self._errands.wait(min(LOOK_SECONDS, max(0.0, self._beat_at - time.monotonic())))
            try:
                self._round()
            except Error as error:
                wait = min(backoff.failed(), get_settings().beat.total_seconds())
                log_failure(logger, error, "A heartbeat failed", wait)
                self._beat_at = time.monotonic() + wait
                self._store.connection.close()
                self._ended.wait(wait)
            else:
                backoff.worked()

    def hear_cancel_call(self, lease_ids: Collection[int]) -> None:
        """Look at once if these leases are any of ours. From any thread."""
        if not self._held.queues().keys().isdisjoint(lease_ids):
            self._cancels.call()
            self._errands.wake()

    def _round(self) -> None:
        """Beat if it is time, and do what running jobs ask for."""
        if not self._ended.requested and time.monotonic() >= self._beat_at:
            self._beat()
            self._beat_at = time.monotonic() + get_settings().beat.total_seconds()
        for job, answer in self._errands.renewals():
            self._renew(job, answer)
        self._errands.write_progress(self._note_progress)
        self._look_for_cancels()

    def _renew(self, job: ClaimedJob, answer: Future[bool]) -> None:
        """Renew one job's lease at its own request."""
        asked_at = time.monotonic()
        try:
            self._store.prepare()
            to_cancel = keep(self._store, job)
        except Error as error:
            unavailable = QueueUnavailableError("renew the lease", self._store.alias)
            unavailable.__cause__ = error
            answer.set_exception(unavailable)
            raise
        except Exception as error:  # noqa: BLE001 - the job's own to deal with, as a lost lease is
            answer.set_exception(error)
        else:
            self._held.renewed([job.lease_id], asked_at)
            answer.set_result(to_cancel)

    def _note_progress(self, job_id: UUID, lease_id: int, progress: str) -> None:
        self._store.prepare()
        self._store.note_progress(job_id, lease_id, progress)

    def _look_for_cancels(self) -> None:
        """Look for requests when somebody said that there are some; else only for jobs that have run for a while."""
        now = time.monotonic()
        if self._cancels.was_called() or (now >= self._look_at and self._longest_run() >= LOOK_SECONDS):
            self._look_at = now + LOOK_SECONDS
            self._store.prepare()
            self._cancels.replace(self._store.cancel_requests(self._held.queues()))

    def _beat(self) -> None:
        self._store.prepare()
        asked_at = time.monotonic()
        leases = self._held.queues()
        lost = renew(self._store, leases)
        self._held.renewed(leases.keys() - lost, asked_at)
        # A lease that was settled while the statement ran is not lost, only gone.
        gone_missing = lost & self._held.queues().keys()
        if gone_missing:
            self._held.lost(gone_missing)
            logger.warning(
                "Leases %s no longer hold; what their jobs come to is not recorded.",
                ", ".join(map(str, sorted(gone_missing))),
                extra={"lease_ids": sorted(gone_missing)},
            )
        worker = self._row()
        request = self._store.beat_worker(worker.pk, self._report())
        if request is not None:
            if self._heed(request):
                # Whoever asked is told at once that it was heard.
                self._store.beat_worker(worker.pk, self._report())
        elif not self._store.register_worker(worker):
            self._go_on_under_id(worker)

    def _go_on_under_id(self, worker: Worker) -> None:
        """Leave the name to the process that took it while this one was silent: it was right to think it dead."""
        logger.warning("The name %r was taken over while this worker was silent; it is %s now.", worker.name, worker.pk)
        worker.name = worker.pk[-NAME_LENGTH:]
        self._store.register_worker(worker)
