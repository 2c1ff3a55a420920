"""
One drain: fill, line everybody up, start, watch.

Start-up is no part of it. Processes are started before a lock on the table; once each of them waits there with its
first claim, the lock is let go, and the clock runs from then to the look that finds everything settled.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from .bench import Bench
from .contestants import Contestant
from .database import Database
from .errors import BenchmarkError
from .fleet import Fleet, wait_until
from .watching import LOOK_SECONDS, Timeline, Watch, logs_of

START_SECONDS = 60


def drain(
    bench: Bench,
    contestant: Contestant,
    jobs: int,
    *,
    processes: int = 1,
    tenants: int = 1,
    until: float = 1.0,
    look_seconds: float = LOOK_SECONDS,
    snapshot: bool = False,
    checkpoint_last: bool = True,
    environment: dict[str, str] | None = None,
) -> Timeline:
    """
    Let ``processes`` of ``contestant`` settle ``jobs``, or ``until`` a share of them is settled, and tell when.

    With ``snapshot`` another session holds a snapshot from before the start. With ``checkpoint_last`` nothing of the
    filling is left to be written, but each page that a drain changes is logged whole, once; without, none is.
    """
    database = bench.database
    surroundings = {**bench.environment, **contestant.environment, **(environment or {})}
    if not checkpoint_last:
        database.checkpoint()
    markers = contestant.fill(database, surroundings, jobs, tenants)
    if checkpoint_last:
        database.checkpoint()
    with held_snapshot(database, wanted=snapshot), fleet_of(surroundings) as fleet:
        begun, wal = line_up(database, contestant, fleet, processes)
        with watch(database, contestant, fleet, jobs, markers) as watching:
            timeline = watching.follow(begun, until=until, look_seconds=look_seconds)
        timeline.wal_bytes = database.wal_position() - wal
        bench.listen_to(fleet)
    require_success(database, contestant)
    return timeline


@contextmanager
def fleet_of(environment: dict[str, str]) -> Iterator[Fleet]:
    """Yield a fleet whose logs go with it."""
    with tempfile.TemporaryDirectory(prefix="dwq-bench-") as folder, Fleet(environment, Path(folder)) as fleet:
        yield fleet


def line_up(database: Database, contestant: Contestant, fleet: Fleet, processes: int) -> tuple[float, int]:
    """Start the processes, let them go together, and return when that was and how long the log was then."""
    with database.locked(contestant.table) as line:
        for _ in range(processes):
            fleet.start(program=contestant.program, ready=False)

        def all_wait() -> bool:
            if any(worker.exit_code is not None for worker in fleet.workers):
                raise BenchmarkError(f"A process ended before the start.\n{logs_of(fleet.workers)}")
            return database.waiting_with(contestant.claims_with) >= processes

        wait_until(all_wait, "all processes to make their first claim", seconds=START_SECONDS)
        wal = database.wal_position()
        line.commit()
    return time.monotonic(), wal


@contextmanager
def watch(
    database: Database, contestant: Contestant, fleet: Fleet, jobs: int, markers: Sequence[Any]
) -> Iterator[Watch]:
    """Yield a watch with a connection of its own, on which the look-ups cannot become scans."""
    kind = "bigint" if isinstance(markers[0], int) else "uuid"
    unsettled = f"SELECT count(*) FROM {contestant.table} WHERE {contestant.unsettled}"
    marked = f"{unsettled} AND id = ANY(%(ids)s::{kind}[])"
    with database.connect() as connection:
        connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        yield Watch(
            jobs=jobs,
            markers_left=lambda: _count(connection, marked, {"ids": list(markers)}),
            jobs_left=lambda: _count(connection, unsettled),
            fleet=fleet,
        )


@contextmanager
def held_snapshot(database: Database, *, wanted: bool = True) -> Iterator[None]:
    """Hold a snapshot, as a dump does: what is deleted meanwhile cannot be cleaned away."""
    if not wanted:
        yield
        return
    with database.connect(autocommit=False) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM pg_class")
        yield


def require_success(database: Database, contestant: Contestant) -> None:
    """Raise BenchmarkError if any job failed."""
    if count := contestant.failed(database):
        raise BenchmarkError(f"{count} jobs of {type(contestant).__name__} failed in a drain.")


def _count(connection: psycopg.Connection, statement: str, parameters: dict[str, Any] | None = None) -> int:
    [(count,)] = connection.execute(statement, parameters, prepare=True).fetchall()
    return int(count)
