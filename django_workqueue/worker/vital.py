"""Vital signs: what a worker or supervisor shows to whoever started it. Nothing that was not asked for."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

from .health import Health, HealthServer
from .notify import Notifier
from .options import WorkerOptions

logger = logging.getLogger("django_workqueue.worker")

BEAT_SECONDS = 1.0


class VitalSigns:
    """
    A file, a port, the service manager.

    File and service manager hear of progress from the very loop that makes it, and from no thread of their own: a loop
    that is stuck falls silent.
    """

    def __init__(self, options: WorkerOptions, examine: Callable[[], Health], on_crash: Callable[[], None]) -> None:
        self._options = options
        self._examine = examine
        self._on_crash = on_crash
        self._notifier = Notifier()
        self._server: HealthServer | None = None
        self._beat_at = 0.0
        self._said = ""

    def start(self) -> str:
        """Begin to show them; return what cannot be done, "" when all can."""
        self._notifier = Notifier.from_environment()
        path, port = self._options.heartbeat_file, self._options.health_port
        try:
            if path is not None:
                path.touch()
        except OSError as error:
            return f"--heartbeat-file {str(path)!r} cannot be written: {error.strerror}."
        try:
            if port is not None:
                self._server = HealthServer(self._options.health_host, port, self._examine, self._on_crash)
                self._server.start()
        except OSError as error:
            return f"--health-port {port} on {self._options.health_host!r} cannot be had: {error.strerror}."
        return ""

    @property
    def wanted(self) -> bool:
        """Whether anybody is to hear of what the loop does."""
        return self._options.heartbeat_file is not None or self._notifier.has_listener

    @property
    def longest_silence(self) -> float:
        """Seconds within which there must be a beat, for the sake of whoever watches."""
        watchdog = self._notifier.watchdog_seconds
        return float("inf") if watchdog is None else watchdog / 2

    def beat(self) -> None:
        """Show that there is progress; called by the loop that makes it, as often as it likes."""
        now = time.monotonic()
        if now < self._beat_at:
            return
        self._beat_at = now + min(BEAT_SECONDS, self.longest_silence / 2)
        self._notifier.beat()
        if self._options.heartbeat_file is not None:
            try:
                self._options.heartbeat_file.touch()
            except OSError as error:
                # The worker goes on: the file ages, which is what whoever looks at it must see.
                logger.warning("The heartbeat file cannot be written: %s.", error.strerror)

    def say(self, state: str) -> None:
        """Tell the service manager, once, "READY=1" or "STOPPING=1"."""
        if state != self._said:
            self._said = state
            self._notifier.send(state)

    def close(self) -> None:
        """Stop showing them: who looks for a sign finds none."""
        if self._server is not None:
            self._server.close()
        if self._options.heartbeat_file is not None:
            with contextlib.suppress(OSError):
                self._options.heartbeat_file.unlink()
