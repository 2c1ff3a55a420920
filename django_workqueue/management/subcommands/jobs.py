"""``manage.py workqueue jobs`` and ``job``: what waits, runs or is over, and everything about one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from ...domain.masking import Veil
from ...domain.states import Ending, JobState
from ...lifecycle import listing
from .. import arguments
from .base import Subcommand
from .descriptions import lines_of_found, lines_of_page, of_found, of_page
from .filters import add_filters, wanted


class Jobs(Subcommand):
    """Lists jobs, newest first: the live ones, or those in one state."""

    only_reads = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is looked for, and where to begin."""
        add_filters(parser, states=(*JobState.values, *Ending.values), limit=50)
        parser.add_argument("--after", help="Begin behind the place that an earlier list ended with.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Read one page."""
        given = {"after": options["after"], "limit": options["limit"], "database": database}
        return of_page(listing.jobs(wanted(options), **given))

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say two or three lines for each job."""
        return lines_of_page(report, "There is no such job.")


class OneJob(Subcommand):
    """Shows one job, live, finished or dead, with its failures."""

    only_reads = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which, and whether what it was given is shown."""
        parser.add_argument("id", type=arguments.job_id, metavar="ID", help="Id of the job.")
        parser.add_argument("--tenant", help="Name of the tenant; another tenant's job is not found.")
        parser.add_argument(
            "--values", action="store_true", help="Show arguments, metadata, result, messages and tracebacks as well."
        )
        parser.add_argument(
            "--reveal", action="store_true", help="With --values: show also what WORKQUEUE['MASK'] hides."
        )

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Read it."""
        found = listing.job(options["id"], tenant=options["tenant"], database=database)
        veil = Veil.lifted(found.row) if options["reveal"] else Veil.of(found.row)
        return of_found(found, veil, values=options["values"])

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say one line for each thing that is known."""
        return lines_of_found(report)
