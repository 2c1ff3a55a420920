"""What a person wants of this worker, as the heartbeat finds it in the worker's row."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..models.worker import WorkerRequest
from .dispatcher import Dispatcher
from .shutdown import StopRequest

logger = logging.getLogger("django_workqueue.worker")


class Requests:
    """Heeds each new request once. ``tell`` is called before a stop: a supervisor must know why it comes."""

    def __init__(self, worker: str, dispatcher: Dispatcher, stop: StopRequest) -> None:
        self._worker = worker
        self._dispatcher = dispatcher
        self._stop = stop
        self.tell: Callable[[], None] = lambda: None
        self.latest = WorkerRequest.WORK

    @property
    def is_dismissed(self) -> bool:
        """Whether the worker was asked to stop."""
        return self.latest is WorkerRequest.STOP

    def heed(self, request: str) -> bool:
        """Do what is asked, and say whether that is anything new."""
        if request == self.latest:
            return False
        self.latest = WorkerRequest(request)
        logger.warning("Worker %s is asked to: %s.", self._worker, self.latest.value)
        self._dispatcher.quiet = self.latest is WorkerRequest.QUIET
        if self.is_dismissed:
            self.tell()
            self._stop.drain()
        return True
