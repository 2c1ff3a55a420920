"""Waiting for something to become true, never longer than a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PAUSE_SECONDS = 0.02


class DemoError(Exception):
    """The demonstration could not be played to its end."""


def wait_for(look: Callable[[], Found], what: str, *, seconds: float) -> Found:
    """Return the first true answer of ``look``. Raises DemoError naming ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise DemoError(f"Waited {seconds:g} seconds in vain for {what}.")
        time.sleep(PAUSE_SECONDS)
    return found
