"""
The diary: what really ran, in a file beside the database and independent of it, and gates that hold jobs.

Tasks write and wait, tests read and open. A line is one short write in append mode, so that lines of many processes
never mix.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

GATE_SECONDS = 60


def clock() -> float:
    """Return the machine's monotonic time: one clock for all processes, whatever they believe the date to be."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that a job did."""

    event: str
    job: str
    attempt: int
    worker: str
    at: float
    note: str = ""


class Diary:
    """The diary in ``folder``, which ``ACCEPTANCE_DIARY`` names to the workers."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "diary"
        self._gates = folder / "gates"
        self._gates.mkdir(exist_ok=True)

    def write(self, event: str, job: str, attempt: int, note: str = "") -> None:
        """Add an entry."""
        line = [event, job, attempt, os.environ.get("FLEET_WORKER", ""), clock(), note]
        file = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, json.dumps(line).encode() + b"\n")
        finally:
            os.close(file)

    def entries(self, event: str, job: str | None = None) -> list[Entry]:
        """Return the entries of one kind, of all jobs or of one, in the order in which they were written."""
        text = self._file.read_text() if self._file.exists() else ""
        found = [Entry(*json.loads(line)) for line in text.splitlines()]
        return [entry for entry in found if entry.event == event and job in {None, entry.job}]

    def starts(self, job: str | None = None) -> list[Entry]:
        """Return the starts of all jobs, or of one."""
        return self.entries("start", job)

    def open(self, *gates: str) -> None:
        """Let jobs pass that wait for these gates, now or later."""
        for gate in gates:
            (self._gates / gate).touch()

    def is_open(self, gate: str) -> bool:
        """Whether a gate is open."""
        return (self._gates / gate).exists()

    def pass_gate(self, gate: str, attempt: int) -> None:
        """Wait until ``gate`` is open, or ``gate-attempt`` for this attempt alone."""
        deadline = clock() + GATE_SECONDS
        while not any(self.is_open(name) for name in (gate, f"{gate}-{attempt}")):
            if clock() > deadline:
                raise TimeoutError(f"Nobody opened the gate {gate!r}.")
            time.sleep(0.02)


def worker_diary() -> Diary:
    """Return the diary of the test that started this worker."""
    return Diary(Path(os.environ["ACCEPTANCE_DIARY"]))
