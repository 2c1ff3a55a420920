"""The heartbeat: renews the leases with work in hand and says that the worker is alive."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import Error

from ..conf import get_settings
from ..lifecycle.claim import renew
from ..models import Worker
from ..models.base import NAME_LENGTH
from ..store import Store
from ..store.watch import Beat
from .held import HeldLeases
from .shutdown import StopRequest
from .thread import Backoff, WorkerThread, log_failure

logger = logging.getLogger("django_workqueue.worker")


class Heartbeat(WorkerThread):
    """Beats until it is ended, also while the worker drains: running jobs still need their leases."""

    def __init__(
        self,
        *,
        store: Store,
        row: Callable[[], Worker],
        held: HeldLeases,
        report: Callable[[], Beat],
        ended: StopRequest,
        on_crash: Callable[[], None],
    ) -> None:
        super().__init__("heartbeat", on_crash)
        self._store = store
        self._row = row
        self._held = held
        self._report = report
        self._ended = ended

    def work(self) -> None:
        """Beat every third of the lease; after an error sooner, as the leases run out meanwhile."""
        backoff = Backoff()
        wait = get_settings().beat.total_seconds()
        while not self._ended.wait(wait):
            try:
                self._beat()
            except Error as error:
                wait = min(backoff.failed(), get_settings().beat.total_seconds())
                log_failure(logger, error, "A heartbeat failed", wait)
                self._store.connection.close()
            else:
                backoff.worked()
                wait = get_settings().beat.total_seconds()

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
        if not (self._store.beat_worker(worker.pk, self._report()) or self._store.register_worker(worker)):
            self._go_on_under_id(worker)

    def _go_on_under_id(self, worker: Worker) -> None:
        """Leave the name to the process that took it while this one was silent: it was right to think it dead."""
        logger.warning("The name %r was taken over while this worker was silent; it is %s now.", worker.name, worker.pk)
        worker.name = worker.pk[-NAME_LENGTH:]
        self._store.register_worker(worker)
