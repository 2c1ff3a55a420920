"""Threads that start at the same moment, each on its own database connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connections

PATIENCE_SECONDS = 60


def race(*runners: Callable[[], Any]) -> list[Any]:
    """Call all ``runners`` at once and return their answers in order; the first error of any is raised."""
    start = Barrier(len(runners))

    def run(runner: Callable[[], Any]) -> Any:
        try:
            start.wait(PATIENCE_SECONDS)
            return runner()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(runners)) as pool:
        futures = [pool.submit(run, runner) for runner in runners]
        return [future.result(PATIENCE_SECONDS) for future in futures]


def flat(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the members of all ``lists`` in one."""
    return [member for each in lists for member in each]
