"""
``cost.*``: what the queue asks of the database.

Statements are counted in the worker's process, by the drivers' calls, from the start of a drain to its end, and over a
minute in which there is nothing to do. The write-ahead log is what the server wrote during the same drain, claims and
completions; pages that a checkpoint makes it log whole are none of it, for the last one is before the filling.
"""

from __future__ import annotations

import time
from pathlib import Path

from ..bench import Bench
from ..children import ACTORS
from ..contestants import DAY_SECONDS, Ours
from ..drains import drain, fleet_of
from ..figures import Figure, Readings, Trial, at_most
from ..fleet import RUNWORKERS
from ..rows import own_tables

JOBS = 100_000
IDLE_SECONDS = 60
#: The statements of a worker's start are none of its idle ones.
SETTLING_SECONDS = 3
COUNTED = (*ACTORS, "counted", *RUNWORKERS[2:])


def busy(bench: Bench) -> Readings:
    """Drain a backlog and count."""
    jobs = bench.sized(JOBS)
    with bench.folder() as folder:
        log = folder / "statements"
        timeline = drain(
            bench, Ours(program=COUNTED), jobs, checkpoint_last=False, environment={"BENCHMARK_STATEMENTS": str(log)}
        )
        count = statements(log, timeline.begun, timeline.ended)
    return {"cost.statements_per_job": count / jobs, "cost.wal_bytes_per_job": timeline.wal_bytes / jobs}


def retained(bench: Bench) -> Readings:
    """Drain a backlog of which everything is kept."""
    jobs = bench.sized(JOBS)
    timeline = drain(bench, Ours(kept_seconds=DAY_SECONDS), jobs, checkpoint_last=False)
    return {"cost.wal_bytes_per_retained_job": timeline.wal_bytes / jobs}


def idle(bench: Bench) -> Readings:
    """Let a worker wait and count."""
    bench.database.truncate(*own_tables())
    seconds = bench.lasting(IDLE_SECONDS)
    with bench.folder() as folder, fleet_of(bench.environment) as fleet:
        log = folder / "statements"
        fleet.start(program=COUNTED, BENCHMARK_STATEMENTS=str(log))
        time.sleep(SETTLING_SECONDS)
        begun = time.monotonic()
        time.sleep(seconds)
        bench.listen_to(fleet)
        count = statements(log, begun, begun + seconds)
    return {"cost.idle_statements_per_minute": count * 60 / seconds}


def statements(log: Path, begun: float, ended: float) -> int:
    """Count the statements between two moments."""
    moments = map(int, log.read_text(encoding="ascii").split())
    return sum(begun <= moment / 1e9 <= ended for moment in moments)


TRIALS = (
    Trial("cost.busy", busy, ("cost.statements_per_job", "cost.wal_bytes_per_job")),
    Trial("cost.retained", retained, ("cost.wal_bytes_per_retained_job",)),
    Trial("cost.idle", idle, ("cost.idle_statements_per_minute",)),
)

FIGURES = (
    Figure(name="cost.statements_per_job", over="cost.statements_per_job", unit="", target=at_most(0.1)),
    Figure(name="cost.wal_bytes_per_job", over="cost.wal_bytes_per_job", unit="bytes"),
    Figure(name="cost.wal_bytes_per_retained_job", over="cost.wal_bytes_per_retained_job", unit="bytes"),
    Figure(
        name="cost.idle_statements_per_minute",
        over="cost.idle_statements_per_minute",
        unit="",
        target=at_most(120),
    ),
)
