"""Doing something at equal distances, and noting when each time was."""

from __future__ import annotations

import time
from collections.abc import Callable


def at_intervals(count: int, seconds: float, act: Callable[[int], int]) -> dict[int, int]:
    """Call ``act`` with 0, 1, 2 ... every ``seconds`` and return the moments that it answers, by number."""
    begun = time.monotonic()
    moments = {}
    for number in range(count):
        time.sleep(max(0.0, begun + number * seconds - time.monotonic()))
        moments[number] = act(number)
    return moments
