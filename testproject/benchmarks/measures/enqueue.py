"""
``enqueue.*``: how fast jobs are stored.

One by one: ``.enqueue()``, each in a transaction of its own, against an INSERT of the same row through Django's cursor.
Many: one ``enqueue_many`` against one COPY of the same rows, and against what pgqueuer's ``enqueue`` stores.
"""

from __future__ import annotations

from ..bench import Bench
from ..children import ask
from ..figures import Figure, Readings, Trial, at_least
from ..rows import own_tables

SINGLE_JOBS = 5_000
MANY_JOBS = 100_000


def single(bench: Bench) -> Readings:
    """Store jobs one by one."""
    return _stored(bench, "single", SINGLE_JOBS)


def many(bench: Bench) -> Readings:
    """Store jobs all at once."""
    return _stored(bench, "many", MANY_JOBS)


def many_of_pgqueuer(bench: Bench) -> Readings:
    """Store jobs all at once with pgqueuer."""
    ask(bench.environment, "pgqueuer", "install")
    bench.database.truncate("pgqueuer", "pgqueuer_log", "pgqueuer_statistics")
    bench.database.checkpoint()
    jobs = bench.sized(MANY_JOBS)
    seconds = ask(bench.environment, "pgqueuer", "enqueue", "--jobs", str(jobs))
    return {"enqueue.many_of_pgqueuer": jobs / seconds}


def _stored(bench: Bench, what: str, jobs: int) -> Readings:
    bench.database.truncate(*own_tables())
    order = [] if bench.round % 2 else ["--package-first"]
    rates = ask(bench.environment, "enqueue", what, "--jobs", str(bench.sized(jobs)), *order)
    bench.database.truncate(*own_tables())
    return {f"enqueue.{name}": rate for name, rate in rates.items()}


TRIALS = (
    Trial("enqueue.single", single, ("enqueue.single", "enqueue.raw")),
    Trial("enqueue.many", many, ("enqueue.many", "enqueue.copy")),
    Trial("enqueue.many_of_pgqueuer", many_of_pgqueuer, ("enqueue.many_of_pgqueuer",), peers=True),
)

FIGURES = (
    Figure(
        name="enqueue.single_over_raw",
        over="enqueue.single",
        under="enqueue.raw",
        unit="rows/s",
        target=at_least(0.75),
    ),
    Figure(
        name="enqueue.many_over_copy",
        over="enqueue.many",
        under="enqueue.copy",
        unit="rows/s",
        target=at_least(0.35),
    ),
    Figure(
        name="enqueue.many_over_pgqueuer",
        over="enqueue.many",
        under="enqueue.many_of_pgqueuer",
        unit="rows/s",
        target=at_least(0.8),
    ),
)
