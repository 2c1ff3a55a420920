"""The pulse of a dispatcher: whether it goes its rounds, as others may ask without disturbing it."""

from __future__ import annotations

import time
from collections.abc import Callable

PULSE_SECONDS = 5.0


class Pulse:
    """Written by the dispatcher, read by any thread."""

    def __init__(self) -> None:
        self._at: float | None = None
        self.on_beat: Callable[[], None] | None = None
        """Called by the dispatcher at every beat; None costs nothing."""
        self.longest_sleep = PULSE_SECONDS
        """Seconds that an idle dispatcher sleeps at most: who goes no rounds for much longer is stuck."""
        self.reachable = False
        """Whether the last round ended without an error."""

    def beat(self) -> None:
        """Note that a round begins."""
        self._at = time.monotonic()
        if self.on_beat is not None:
            self.on_beat()

    @property
    def age(self) -> float:
        """Seconds since the last round began; 0 before the first."""
        return 0.0 if self._at is None else time.monotonic() - self._at
