"""A thread of the worker whose death is the death of the process."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable

from django.db import Error

from .reset import close_connections

logger = logging.getLogger("django_workqueue.worker")


class WorkerThread(threading.Thread):
    """
    Runs ``work`` to its end. Anything that escapes it takes the process down.

    A worker that lost its heartbeat or its reaper must not go on looking alive. Daemonic: a job that cannot be stopped
    must not keep the process from leaving.
    """

    def __init__(self, name: str, on_crash: Callable[[], None]) -> None:
        super().__init__(name=f"workqueue-{name}", daemon=True)
        self._on_crash = on_crash

    def run(self) -> None:
        """Run ``work`` and close this thread's connections."""
        try:
            self.work()
        except BaseException:
            logger.critical("The thread %s died; the worker stops.", self.name, exc_info=True)
            self._on_crash()
        finally:
            close_connections()

    def work(self) -> None:
        """Do its work until it is told to stop."""
        raise NotImplementedError


def log_failure(log: logging.Logger, error: Exception, what: str, wait: float) -> None:
    """
    Log that something failed and is tried again: a database's error as a warning, any other as a fault of ours.

    The first line only, and the rest at DEBUG: databases quote the row that failed, with the job's arguments in it.
    """
    level = logging.WARNING if isinstance(error, Error) else logging.ERROR
    first_line = (str(error).splitlines() or [""])[0]
    log.log(level, "%s (%s: %s); next try in %.1f s.", what, type(error).__name__, first_line, wait)
    log.debug("%s:", what, exc_info=error)


class Backoff:
    """How long a loop waits after errors in a row: doubling from a tenth of a second to five, jittered."""

    def __init__(self) -> None:
        self._errors = 0

    def failed(self) -> float:
        """Note an error and return the seconds to wait."""
        self._errors += 1
        wait: float = min(0.1 * 2.0 ** min(self._errors - 1, 10), 5.0) * random.uniform(0.5, 1)  # noqa: S311 - spreading, no secret
        return wait

    def worked(self) -> None:
        """Note a success."""
        self._errors = 0
