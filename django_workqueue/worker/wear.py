"""How worn a worker process is: when it should make room for a fresh one."""

from __future__ import annotations

import random
import time

from .options import WorkerOptions
from .tally import memory_bytes

LOOK_SECONDS = 1.0
"""Shortest time between two looks at the memory."""


class Wear:
    """Watches --max-memory, --max-lifetime and, where a supervisor has to be told in time, --max-jobs."""

    def __init__(self, options: WorkerOptions, *, supervised: bool) -> None:
        self._max_memory = options.max_memory
        self._max_jobs = options.max_jobs if supervised else None
        if self._max_memory is not None:
            _check_memory(self._max_memory)
        self._look_at = 0.0
        self._settled = 0
        # Processes that were started together must not all be replaced together.
        share = random.uniform(0.8, 1)  # noqa: S311 - spreading, no secret
        lifetime = options.max_lifetime
        self._ends_at = None if lifetime is None else time.monotonic() + lifetime.total_seconds() * share

    @classmethod
    def of(cls, options: WorkerOptions, *, supervised: bool) -> Wear | None:
        """Return what watches these options; None when there is nothing to watch."""
        limits = (options.max_memory, options.max_lifetime, options.max_jobs if supervised else None)
        return None if limits == (None, None, None) else cls(options, supervised=supervised)

    def reason(self, claimed: int, settled: int) -> str:
        """Return why the process should be replaced; "" when it need not be."""
        # Told early: the last tenth is done while the successor starts.
        if self._max_jobs is not None and claimed >= max(1, self._max_jobs * 9 // 10):
            return f"it has had {claimed} jobs"
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            return "its lifetime is over"
        return self._memory_reason(settled)

    def _memory_reason(self, settled: int) -> str:
        """Judge the memory when a job has ended: what a job needs while it runs is its own affair."""
        now = time.monotonic()
        if self._max_memory is None or settled == self._settled or now < self._look_at:
            return ""
        self._look_at, self._settled = now + LOOK_SECONDS, settled
        used = memory_bytes()
        return f"it holds {used // 2**20} MB of memory" if used > self._max_memory else ""


def _check_memory(most: int) -> None:
    """Refuse what would have the process replaced after every job."""
    used = memory_bytes()
    if not used:
        raise ValueError("--max-memory cannot be watched: this system does not tell how much a process holds.")
    if used >= most:
        raise ValueError(
            f"--max-memory is {most // 2**20} MB, and the worker holds {used // 2**20} MB before its first job."
        )
