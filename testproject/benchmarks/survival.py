"""
``python -m testproject.benchmarks.survival``: workers are killed and frozen, and the server is restarted, under load.

Prints what became of every job and every attempt. Exit code 0 only if nothing was lost, nothing ended twice, and every
attempt that failed or was reaped has its record.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, islice
from typing import TYPE_CHECKING

from django.db import Error, connection, transaction

from .fleet import Worker, wait_until
from .stage import Stage, stage

if TYPE_CHECKING:
    from .ledger import Books

LEASE_SECONDS = 3
BATCH = 500
MAX_SECONDS = 900
#: How many of a hundred jobs are of each kind.
MIXTURE = {"short": 70, "coroutine": 12, "fails once": 10, "nothing": 5, "long": 1, "always fails": 2}
BLOWS = {
    "kill": "workers killed",
    "freeze": "workers frozen past their leases",
    "cut": "sessions ended",
    "fast": "server restarts",
    "immediate": "server crashes",
}
WORKER_OPTIONS = ("--concurrency", "4", "--shutdown-timeout", "10")


def main() -> int:
    """Play the siege and return the exit code."""
    options = parse_options()
    print(f"Seed {options.seed}; {options.jobs} jobs on {options.database}.")
    quick = {"lease": LEASE_SECONDS, "reap_interval": 0.5, "poll_interval": 0.3, "backoff": 0.1, "max_attempts": 20}
    with stage(options.database, **quick) as here:
        from .ledger import balance, open_ledger  # noqa: PLC0415 - models need Django to be set up

        open_ledger()
        siege = Siege(here, random.Random(options.seed), options)
        siege.run()
        books = balance(siege.accepted)
        report(books, siege)
    return 1 if books.wrongs else 0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="survival", description=__doc__.split("\n\n")[1] if __doc__ else None)
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--freezes", type=int, default=5, help="Workers stopped past their lease, then continued.")
    parser.add_argument("--cuts", type=int, default=10, help="Database sessions ended (PostgreSQL only).")
    parser.add_argument("--restarts", type=int, default=2, help="Restarts of the server (PostgreSQL only).")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    return parser.parse_args()


class Siege:
    """Jobs, workers that run them, and blows that fall while they do."""

    def __init__(self, here: Stage, dice: random.Random, options: argparse.Namespace) -> None:
        self._here = here
        self._dice = dice
        self._options = options
        self.accepted: list[str] = []
        self.blows: Counter[str] = Counter()
        self._frozen: list[tuple[float, Worker]] = []
        self.seconds = 0.0
        self.unclean: list[str] = []

    def run(self) -> None:
        """Enqueue everything, let the blows fall as the work goes on, and wait for the end of it."""
        for start in range(0, self._options.jobs, BATCH):
            self._enqueue(min(BATCH, self._options.jobs - start))
        begun = time.monotonic()
        crew = self._here.fleet.start_many(self._options.workers, *WORKER_OPTIONS)
        for count, blow in self._plan():
            self._wait_for_ends(count)
            self._strike(blow, crew)
        self._wait_for_ends(len(self.accepted))
        self.seconds = time.monotonic() - begun
        self._thaw(float("inf"))
        self.unclean = [f"{worker.name} left with {code}" for worker in crew if (code := worker.stop())]

    def _enqueue(self, count: int) -> None:
        """Enqueue so many jobs of all kinds in one transaction."""
        from . import trials  # noqa: PLC0415 - as above

        names = self._dice.choices(list(MIXTURE), list(MIXTURE.values()), k=count)
        with transaction.atomic():
            for name in names:
                task, arguments = trials.draw(name, self._dice)
                tenant = f"tenant {self._dice.randrange(5)}"
                self.accepted.append(task.using(tenant=tenant).enqueue(*arguments).id)

    def _wait_for_ends(self, count: int) -> None:
        def look() -> bool:
            self._thaw(time.monotonic())
            return self._ended() >= count

        wait_until(look, f"{count} jobs to end", seconds=MAX_SECONDS)

    def _plan(self) -> Iterator[tuple[int, str]]:
        """Yield the blows in order, each with how many jobs must have ended before."""
        options = self._options
        kinds = ["kill"] * options.kills + ["freeze"] * options.freezes
        if self._here.server:
            kinds += ["cut"] * options.cuts + list(islice(cycle(("fast", "immediate")), options.restarts))
        self._dice.shuffle(kinds)
        moments = sorted(self._dice.uniform(0.02, 0.95) for _ in kinds)
        yield from ((int(moment * len(self.accepted)), kind) for moment, kind in zip(moments, kinds, strict=True))

    def _strike(self, blow: str, crew: list[Worker]) -> None:
        self.blows[blow] += 1
        number = self._dice.randrange(len(crew))
        match blow:
            case "kill":
                crew[number].kill()
                crew[number] = self._here.fleet.start(*WORKER_OPTIONS, ready=False)
            case "freeze":
                crew[number].freeze()
                self._frozen.append((time.monotonic() + LEASE_SECONDS * 1.5, crew[number]))
            case "cut":
                self._end_a_session()
            case _ if self._here.server:
                connection.close()
                self._here.server.restart("fast" if blow == "fast" else "immediate")

    def _thaw(self, now: float) -> None:
        """Let those workers go on whose leases have lapsed by ``now``."""
        for entry in [entry for entry in self._frozen if entry[0] <= now]:
            self._frozen.remove(entry)
            entry[1].thaw()

    def _end_a_session(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
            )

    def _ended(self) -> int:
        from django_workqueue.models import DeadLetter, FinishedJob  # noqa: PLC0415 - as above

        try:
            return FinishedJob.objects.count() + DeadLetter.objects.count()
        except Error:
            connection.close()
            return 0


def report(books: Books, siege: Siege) -> None:
    """Print the books."""
    print(
        ", ".join(f"{BLOWS[blow]}: {count}" for blow, count in siege.blows.items()), f"; {siege.seconds:.0f} s.", sep=""
    )
    print(f"{'accepted':>10} {books.accepted}")
    for place, count in sorted(books.places.items()):
        print(f"{place:>10} {count}")
    print(f"{'claims':>10} {books.claims}")
    for kind, count in sorted(books.failures.items()):
        print(f"{kind:>10} {count} failed attempts")
    for note in siege.unclean:
        print(f"Note: {note}.")
    for wrong in books.wrongs:
        print(f"WRONG: {wrong}.")
    print("The books do not balance." if books.wrongs else "The books balance: nothing lost, nothing ended twice.")


if __name__ == "__main__":
    sys.exit(main())
