"""The watchdog: ends what runs longer than it may. Its thread is there from the first timeout on."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

from ..exceptions import JobStoppedError
from ..lifecycle.events import job_fields
from ..lifecycle.run import Call
from .grip import Grip
from .thread import WorkerThread

logger = logging.getLogger("django_workqueue.worker")

GiveUp = Callable[[Call, type[JobStoppedError], str], None]


class Watchdog(WorkerThread):
    """Looks at the grips of all slots when one is due. A body that ends in time costs it nothing."""

    def __init__(self, give_up: GiveUp, on_crash: Callable[[], None]) -> None:
        super().__init__("watchdog", on_crash)
        self._give_up = give_up
        self._changed = threading.Condition()
        self._next = math.inf
        self._ended = False
        self.grips: list[Grip] = []

    def new_grip(self) -> Grip:
        """Return the grip of one more slot."""
        grip = Grip(self)
        self.grips.append(grip)
        return grip

    def watch(self, due: float) -> None:
        """Look no later than ``due``. Called by whoever has set a grip's ``due`` to it."""
        if due < self._next:
            with self._changed:
                if self._ended:
                    return
                self._next = min(self._next, due)
                if self.is_alive():
                    self._changed.notify()
                else:
                    self.start()

    def give_up(self, call: Call, why: type[JobStoppedError], stack: str) -> None:
        """Log that a body goes on although it was to end, and pass it on."""
        logger.error(
            "Job %s of %s does not end (%s); the worker starts over.",
            call.job.id,
            call.job.task,
            why.__name__,
            extra=job_fields(call.job),
        )
        self._give_up(call, why, stack)

    def work(self) -> None:
        """Look at the grips whenever one is due."""
        with self._changed:
            while not self._ended:
                # Whoever sets a due time from here on finds that nobody waits for an earlier one, and comes in.
                self._next = math.inf
                now = time.monotonic()
                for grip in self.grips:
                    grip.escalate(now)
                self._next = min((due for grip in self.grips if (due := grip.due) is not None), default=math.inf)
                self._changed.wait(None if self._next == math.inf else max(0.0, self._next - time.monotonic()))

    def end(self) -> None:
        """Watch no longer."""
        with self._changed:
            self._ended = True
            self._changed.notify()
