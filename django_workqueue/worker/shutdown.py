"""Being told to stop: by a signal, by an end condition, or by a crash."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger("django_workqueue.worker")

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """
    Whether, and how urgently, the worker is to stop.

    The first request lets running jobs end within the grace time, the second ends at once.
    """

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._event = threading.Event()
        self.now = False
        self.crashed = False

    @property
    def requested(self) -> bool:
        """Whether the worker is to stop."""
        return self._event.is_set()

    def request(self) -> None:
        """Ask once more for a stop."""
        self.now = self.requested
        self._event.set()
        self.wake()

    def crash(self) -> None:
        """Stop at once, and say by the exit code that it was not in order."""
        self.crashed = self.now = True
        self._event.set()
        self.wake()

    def wait(self, seconds: float) -> bool:
        """Wait for a request, and return whether there is one."""
        return self._event.wait(seconds)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Turn SIGTERM and SIGINT into requests for the block. Explicit, as process 1 has no handlers by default."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        # No logging here: the signal may have interrupted a thread that holds the log's lock.
        self.request()
