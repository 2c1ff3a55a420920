"""The guard of the dispatcher, --watchdog: ends a worker whose dispatcher is stuck although the database answers."""

from __future__ import annotations

import faulthandler
import logging
import os
import tempfile
import threading
from collections.abc import Callable
from datetime import timedelta

from django.db import Error

from ..models import Worker
from ..store import Store
from .pulse import Pulse
from .shutdown import StopRequest
from .thread import WorkerThread

logger = logging.getLogger("django_workqueue.worker")

LOG_SECONDS = 5.0
"""How long the log may take: what is stuck may hold its lock."""


class Guard(WorkerThread):
    """
    Looks at the pulse, and at the database when the pulse is missing.

    A database that is away is no reason to end: the dispatcher waits for it. ``leave`` ends the process at once; the
    leases lapse, and others take the jobs over.
    """

    def __init__(
        self,
        store: Store,
        pulse: Pulse,
        *,
        patience: timedelta,
        ended: StopRequest,
        on_crash: Callable[[], None],
        leave: Callable[[int], None] = os._exit,
    ) -> None:
        super().__init__("guard", on_crash)
        self._store = store
        self._pulse = pulse
        self._patience = patience.total_seconds()
        self._ended = ended
        self._leave = leave

    def work(self) -> None:
        """Look four times in the patience."""
        while not self._ended.wait(self._patience / 4):
            if self._pulse.age > self._patience and self._database_answers():
                self._tell()
                self._leave(1)
                return

    def _database_answers(self) -> bool:
        try:
            self._store.prepare()
            Worker.objects.using(self._store.alias).exists()
        except Error:
            return False
        finally:
            self._store.connection.close()
        return self._pulse.age > self._patience

    def _tell(self) -> None:
        words = f"The dispatcher has made no round for {self._pulse.age:.0f} s although the database answers."
        log = threading.Thread(target=logger.critical, args=("%s The worker ends.\n%s", words, _stacks()), daemon=True)
        log.start()
        log.join(LOG_SECONDS)


def _stacks() -> str:
    """Return what every thread is at."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()
