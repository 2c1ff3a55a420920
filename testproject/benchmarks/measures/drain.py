"""
``drain.*``: how fast a backlog of jobs that do nothing is worked off.

The backlog is there and everybody waits before it when the clock starts. The bound claims 200 jobs at a time; workers
run with their defaults, but for the retention: none, or a day where the name says retained. pgqueuer's manual calls for
batches larger than the default where jobs are short, and names no size: it is given several, and its best one counts.
"""

from __future__ import annotations

from .. import tasks
from ..bench import Bench
from ..contestants import DAY_SECONDS, Contestant, DjangoTasksDb, Ours, PgQueuer, bound
from ..drains import drain
from ..figures import Figure, Readings, Trial, at_least

JOBS = 100_000
PGQUEUER_BATCHES = (100, 300, 1000)
#: A queue that runs some hundreds of jobs a second is given fewer; a rate does not depend on it.
FEW_JOBS = 10_000


def rate(name: str, contestant: Contestant, *, jobs: int = JOBS, processes: int = 1, peers: bool = False) -> Trial:
    """Return the trial whose reading is the rate of one drain."""

    def run(bench: Bench) -> Readings:
        return {name: drain(bench, contestant, bench.sized(jobs), processes=processes).rate()}

    return Trial(name, run, (name,), peers=peers)


def best_of_pgqueuer(name: str, *, processes: int = 1) -> Trial:
    """Return the trial whose reading is the rate at the batch size that serves best."""

    def run(bench: Bench) -> Readings:
        contestants = [PgQueuer(batch=batch) for batch in PGQUEUER_BATCHES]
        jobs = bench.sized(JOBS)
        return {name: max(drain(bench, each, jobs, processes=processes).rate() for each in contestants)}

    return Trial(name, run, (name,), peers=True)


TRIALS = (
    rate("drain.bound", bound()),
    rate("drain.worker", Ours()),
    rate("drain.two_processes", Ours(), processes=2),
    rate("drain.async_worker", Ours(task=tasks.noop_async.module_path)),
    rate("drain.retained_bound", bound(kept_seconds=DAY_SECONDS)),
    rate("drain.retained_worker", Ours(kept_seconds=DAY_SECONDS)),
    best_of_pgqueuer("drain.pgqueuer"),
    best_of_pgqueuer("drain.two_processes_of_pgqueuer", processes=2),
    rate("drain.django_tasks_db", DjangoTasksDb(), jobs=FEW_JOBS, peers=True),
)

FIGURES = (
    Figure(name="drain.worker_over_bound", over="drain.worker", under="drain.bound", target=at_least(0.7)),
    Figure(
        name="drain.retained_over_bound",
        over="drain.retained_worker",
        under="drain.retained_bound",
        target=at_least(0.65),
    ),
    Figure(name="drain.async_over_bound", over="drain.async_worker", under="drain.bound", target=at_least(0.5)),
    Figure(
        name="drain.two_processes_over_one",
        over="drain.two_processes",
        under="drain.worker",
        target=at_least(1.1),
    ),
    Figure(name="drain.over_pgqueuer", over="drain.worker", under="drain.pgqueuer", target=at_least(1.25)),
    Figure(
        name="drain.two_processes_over_pgqueuer",
        over="drain.two_processes",
        under="drain.two_processes_of_pgqueuer",
        target=at_least(1.1),
    ),
    Figure(
        name="drain.over_django_tasks_db",
        over="drain.worker",
        under="drain.django_tasks_db",
        target=at_least(40),
    ),
    # Both keep a trace of every job, as ours does by default: pgqueuer a log, django-tasks-db the row itself.
    Figure(name="drain.retained_over_pgqueuer", over="drain.retained_worker", under="drain.pgqueuer"),
    Figure(name="drain.retained_over_django_tasks_db", over="drain.retained_worker", under="drain.django_tasks_db"),
)
