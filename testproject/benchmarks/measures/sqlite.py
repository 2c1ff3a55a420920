"""
``sqlite.*``: the embedded database, one worker, nothing kept, against a bare loop over the same statements.

There is no lock to line up before, as the worker writes when it starts: the clock runs from the hundredth part that is
settled to the end, for both. The file waits for the disk as SQLite does by default.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from django_workqueue.models import Job

from ..bench import Bench
from ..children import ACTORS, migrate, run
from ..contestants import BATCH, Ours
from ..database import plain_environment
from ..drains import fleet_of
from ..figures import Figure, Readings, Trial, at_least
from ..fleet import RUNWORKERS, Fleet
from ..rows import Rows
from ..tasks import noop
from ..watching import Watch, marker_numbers

JOBS, LEAST_JOBS = 20_000, 2_000
LOOK_SECONDS = 0.005
TABLE = Job._meta.db_table


def worker(bench: Bench) -> Readings:
    """Drain with the worker."""
    return _drained(bench, "sqlite.worker", lambda _file: RUNWORKERS)


def bound(bench: Bench) -> Readings:
    """Drain with the bare loop."""
    return _drained(
        bench, "sqlite.bound", lambda file: (*ACTORS, "sqlite_bound", "--file", str(file), "--batch", str(BATCH))
    )


def _drained(bench: Bench, name: str, program: Callable[[Path], Sequence[str]]) -> Readings:
    jobs = bench.sized(JOBS, least=LEAST_JOBS)
    rows = Rows(count=jobs, task=noop.module_path)
    with bench.folder() as folder:
        file = folder / "queue.sqlite3"
        environment = {**plain_environment(), **Ours().environment, "DATABASE_URL": f"sqlite:///{file}"}
        _fill(environment, rows)
        with fleet_of(environment) as fleet, closing(sqlite3.connect(file, timeout=20)) as connection:
            begun = time.monotonic()
            fleet.start(program=program(file), ready=False)
            timeline = _watch(connection, rows, fleet).follow(begun, look_seconds=LOOK_SECONDS)
            bench.listen_to(fleet)
    return {name: timeline.rate(timeline.first_share)}


def _fill(environment: Mapping[str, str], rows: Rows) -> None:
    migrate(environment)
    run(environment, *ACTORS, "sqlite_fill", "--jobs", str(rows.count), "--begun-ms", str(rows.begun_ms))


def _watch(connection: sqlite3.Connection, rows: Rows, fleet: Fleet) -> Watch:
    ids = [rows.id(number).hex for number in marker_numbers(rows.count)]
    left = f"SELECT count(*) FROM {TABLE}"
    marked = f"{left} WHERE id IN ({', '.join('?' * len(ids))})"
    return Watch(
        jobs=rows.count,
        markers_left=lambda: int(connection.execute(marked, ids).fetchone()[0]),
        jobs_left=lambda: int(connection.execute(left).fetchone()[0]),
        fleet=fleet,
    )


TRIALS = (
    Trial("sqlite.bound", bound, ("sqlite.bound",)),
    Trial("sqlite.worker", worker, ("sqlite.worker",)),
)

FIGURES = (Figure(name="sqlite.worker_over_bound", over="sqlite.worker", under="sqlite.bound", target=at_least(0.4)),)
