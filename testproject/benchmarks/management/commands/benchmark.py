"""``manage.py benchmark``: measure the queue against what the database allows, and against other queues."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from django_workqueue.management import arguments

from ... import catalogue, report
from ...bench import Bench
from ...errors import BenchmarkError
from ...rounds import Outcome, judge, orderly_end, run_rounds

PEER_MODULES = ("asyncpg", "django_tasks_db", "pgqueuer", "uvloop")


class Command(BaseCommand):
    """Parse, run, print."""

    help = "Measures the queue on a PostgreSQL server of its own, or in a database of its own on DATABASE_URL's server."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what to measure, how often and how large."""
        parser.add_argument("--only", type=arguments.names, default=(), help="figures or families, with commas between")
        parser.add_argument("--json", type=Path, dest="file", help="also write the outcome to this file")
        parser.add_argument("--peers", action="store_true", help="measure other queues too")
        parser.add_argument("--rounds", type=int, default=3, help="how often each trial is run (default: 3)")
        parser.add_argument("--scale", type=float, default=1.0, help="the size of everything (default: 1.0)")

    def handle(self, *_args: Any, file: Path | None, peers: bool, rounds: int, scale: float, **given: Any) -> None:
        """Measure and print."""
        if rounds < 1 or scale <= 0:
            raise CommandError(f"--rounds is {rounds} and --scale is {scale:g}; both must be more than zero.")
        if peers and (missing := [name for name in PEER_MODULES if find_spec(name) is None]):
            raise CommandError(f"--peers needs {', '.join(missing)}. Run: pip install --group bench")
        try:
            figures, trials = catalogue.choose(given["only"], peers=peers)
            with orderly_end(), Bench(scale) as bench:
                readings = run_rounds(bench, trials, rounds, self._say)
                where = report.surroundings(bench, rounds)
        except (BenchmarkError, AssertionError) as error:  # the fleet says by the latter what it waited for in vain
            raise CommandError(str(error)) from error
        self._print(judge(figures, readings), where, file)

    def _print(self, outcomes: list[Outcome], where: dict[str, Any], file: Path | None) -> None:
        for line in (*report.heading(where), *report.table(outcomes)):
            self.stdout.write(line)
        if file is not None:
            file.write_text(json.dumps(report.as_json(outcomes, where), indent=2) + "\n")

    def _say(self, line: str) -> None:
        self.stderr.write(line)
