"""
``latency.*``: from the commit of a job to the first line of its task, in a system that is idle otherwise.

One job is enqueued every 50 ms. The floor does the same with nothing but psycopg: insert and NOTIFY in one process,
wake and claim in another. Without notifications a job waits for the next poll, by default up to a second away. Both
clocks are the machine's own, so that moments of two processes can be compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..bench import Bench
from ..children import ACTORS, ask
from ..contestants import Ours
from ..drains import fleet_of
from ..figures import Figure, Readings, Trial, at_most
from ..fleet import GREETING, RUNWORKERS, wait_until
from ..rows import own_tables

JOBS = 400
EVERY_SECONDS = 0.05
#: The first few of either side open connections, prepare statements and learn the lane.
WARM_UP = 10
FLOOR_LISTENS = "The floor listens."


def of_worker(name: str, *options: str) -> Trial:
    """Return the trial of a worker with ``options``."""

    def run(bench: Bench) -> Readings:
        return _latencies(bench, name, (*RUNWORKERS, *options), GREETING, ("enqueue_paced",))

    return _trial(name, run)


def of_floor(name: str) -> Trial:
    """Return the trial of the floor."""

    def run(bench: Bench) -> Readings:
        jobs = ("--jobs", str(_jobs(bench)))
        return _latencies(bench, name, (*ACTORS, "floor", "claim", *jobs), FLOOR_LISTENS, ("floor", "send"))

    return _trial(name, run)


def _trial(name: str, run: Any) -> Trial:
    return Trial(name, run, (f"{name}_p50", f"{name}_p99"))


def _jobs(bench: Bench) -> int:
    return bench.sized(JOBS, least=20) + WARM_UP


def _latencies(bench: Bench, name: str, receiver: Sequence[str], ready: str, sender: Sequence[str]) -> Readings:
    """Start the receiver, let the sender send, and compare what they noted."""
    bench.database.truncate(*own_tables())
    environment = {**bench.environment, **Ours().environment}
    with bench.folder() as folder, fleet_of(environment) as fleet:
        stamps = folder / "stamps"
        fleet.start(program=receiver, ready=False, BENCHMARK_STAMPS=str(stamps)).wait_for_log(ready, seconds=60)
        jobs = _jobs(bench)
        commits = ask(environment, *sender, "--jobs", str(jobs), "--every", str(EVERY_SECONDS))
        wait_until(lambda: len(_read(stamps)) == jobs, "all jobs to be run", seconds=30)
        bench.listen_to(fleet)
        return _percentiles(name, commits, _read(stamps))


def _read(stamps: Path) -> Mapping[int, int]:
    """Return the moments at which jobs started, by number; of a job that ran twice, the first."""
    starts: dict[int, int] = {}
    if stamps.exists():
        for line in stamps.read_text(encoding="ascii").splitlines():
            number, moment = map(int, line.split())
            starts.setdefault(number, moment)
    return starts


def _percentiles(name: str, commits: Mapping[str, int], starts: Mapping[int, int]) -> Readings:
    waits = [(starts[int(number)] - moment) / 1e6 for number, moment in commits.items()][WARM_UP:]
    percentiles = statistics.quantiles(waits, n=100, method="inclusive")
    return {f"{name}_p50": percentiles[49], f"{name}_p99": percentiles[98]}


TRIALS = (
    of_floor("latency.floor"),
    of_worker("latency.worker"),
    of_worker("latency.no_listen", "--no-listen"),
)

FIGURES = (
    Figure(
        name="latency.p50_over_floor",
        over="latency.worker_p50",
        under="latency.floor_p50",
        unit="ms",
        target=at_most(1.5),
    ),
    Figure(
        name="latency.p99_over_floor",
        over="latency.worker_p99",
        under="latency.floor_p99",
        unit="ms",
        target=at_most(3),
    ),
    Figure(name="latency.no_listen_p50", over="latency.no_listen_p50", unit="ms"),
    Figure(name="latency.no_listen_p99", over="latency.no_listen_p99", unit="ms"),
)
