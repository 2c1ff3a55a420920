"""The listener: hears of new jobs at once, over a PostgreSQL connection of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection

from ..store import Store
from ..store.base import CancelCall, Ear, Message
from .lanes import News
from .shutdown import StopRequest
from .thread import Backoff, WorkerThread

logger = logging.getLogger("django_workqueue.worker")

PROBE_SECONDS = 15.0
"""How often the listener checks that it still hears: a dropped connection may stay silent for days."""
ANSWER_SECONDS = 5.0
_LOOK_SECONDS = 0.5


class Listener(WorkerThread):
    """Passes lanes from notifications on. Polling stays the safe way; this is the fast one."""

    def __init__(
        self,
        store: Store,
        *,
        news: News,
        wake: Callable[[], None],
        cancel_call: Callable[[Collection[int]], None],
        ended: StopRequest,
        on_crash: Callable[[], None],
    ) -> None:
        super().__init__("listener", on_crash)
        self._store = store
        self._news = news
        self._wake = wake
        self._cancel_call = cancel_call
        self._ended = ended
        self._heard_at = 0.0
        self._asked_at: float | None = None

    def work(self) -> None:
        """Listen, and connect again whenever the connection breaks or falls silent."""
        backoff = Backoff()
        while not self._ended.requested:
            try:
                with self._store.listening() as ear:
                    backoff.worked()
                    self._tell(hearing=True)
                    self._listen(ear)
            except Exception:  # a driver's errors are not Django's here, and none may end the listener
                wait = backoff.failed()
                self._tell(hearing=False)
                logger.warning(
                    "The listener lost its connection; polling goes on. Next try in %.1f s.", wait, exc_info=True
                )
                self._ended.wait(wait)

    def _tell(self, *, hearing: bool) -> None:
        self._news.hear(hearing=hearing)
        self._wake()

    def _listen(self, ear: Ear) -> None:
        self._heard_at, self._asked_at = time.monotonic(), None
        while not self._ended.requested:
            for message in ear.hear(_LOOK_SECONDS):
                self._heard(message)
            self._probe(ear)

    def _heard(self, message: Message) -> None:
        self._heard_at = time.monotonic()
        match message:
            case None:
                self._asked_at = None
            case CancelCall():
                self._cancel_call(message.lease_ids)
            case _:
                self._news.lanes.extend(message)
                self._wake()

    def _probe(self, ear: Ear) -> None:
        """Send a message to itself from time to time; raise when one was not heard."""
        now = time.monotonic()
        if self._asked_at is not None and now - self._asked_at > ANSWER_SECONDS:
            raise TimeoutError("The listener does not hear its own probe.")
        if self._asked_at is None and now - self._heard_at > PROBE_SECONDS:
            self._asked_at = now
            self._ask(ear)

    def _ask(self, ear: Ear) -> None:
        """Send the probe. A connection that died without a word would keep the statement waiting for ever."""
        guard = threading.Timer(ANSWER_SECONDS, ear.cut)
        guard.start()
        try:
            ear.probe()
        finally:
            guard.cancel()
