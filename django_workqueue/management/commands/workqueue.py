"""``manage.py workqueue``: what people and their cron jobs do to the queue."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, OperationalError
from django.utils.connection import ConnectionDoesNotExist

from ...domain.contract import InvalidTask
from ...exceptions import (
    ArgumentsDoNotFitError,
    InvalidJobError,
    PayloadError,
    TaskNotRegisteredError,
    WorkQueueError,
)
from ...lifecycle.operate import PATIENCE
from ...store import store_for
from ...worker.process import EXIT_CRASHED, EXIT_USAGE
from ..base import QueueCommand
from ..subcommands import SUBCOMMANDS
from ..subcommands.base import Subcommand
from ..words import harmless, printable

FAULTS_OF_USAGE = (
    ImproperlyConfigured,
    ConnectionDoesNotExist,
    ArgumentsDoNotFitError,
    InvalidJobError,
    InvalidTask,
    PayloadError,
    TaskNotRegisteredError,
)


class Command(QueueCommand):
    """Parse, hand over to the subcommand, and print what it reports."""

    help = "Looks after the work queue. Each subcommand has its own --help."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the subcommands, each with the options of all."""
        subparsers = parser.add_subparsers(title="subcommands", dest="subcommand", metavar="subcommand", required=True)
        for name, subcommand in SUBCOMMANDS.items():
            words = (type(subcommand).__doc__ or "").splitlines()[0]
            own = subparsers.add_parser(name, help=words, description=words)
            subcommand.add_arguments(own)
            own.add_argument("--database", help="Alias of the queue's database (default: WORKQUEUE['DATABASE']).")
            own.add_argument(
                "--format", choices=("text", "json"), default="text", help="How to report (default: text)."
            )

    def handle(self, *_args: Any, subcommand: str, database: str | None, **given: Any) -> None:
        """Do it, and print the report."""
        chosen = SUBCOMMANDS[subcommand]
        try:
            report = _reading(chosen, database, given) if chosen.only_reads else chosen.run(database=database, **given)
            told = chosen.json_lines(report) if given["format"] == "json" else chosen.lines(report)
            # A line of JSON has no control character that this would write out in another way.
            self._print(map(printable, told))
        except FAULTS_OF_USAGE as error:
            raise CommandError(harmless(str(error)), returncode=EXIT_USAGE) from error
        except DatabaseError as error:
            raise CommandError(harmless(f"The database could not do it: {error}")) from error
        except WorkQueueError as error:
            raise CommandError(harmless(str(error))) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted. What was done before stays done.") from None
        if chosen.has_failed(report):
            raise SystemExit(EXIT_CRASHED)

    def _print(self, lines: Iterable[str]) -> None:
        """Print until nobody reads any more, as ``head`` does not after its last line."""
        try:
            for line in lines:
                self.stdout.write(line)
            self.stdout.flush()
        except BrokenPipeError:
            # What is still in the buffer is written when Python ends, and would fail once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reading(chosen: Subcommand, database: str | None, given: dict[str, Any]) -> Any:
    """Read what is reported without holding anybody up, or the database busy for long."""
    store = store_for(database)
    try:
        with store.looking(PATIENCE):
            return chosen.run(database=database, **given)
    except OperationalError as error:
        if not store.is_too_slow(error):
            raise
        told = f"The database was given {PATIENCE.seconds} s for a statement and was not done. Name a queue or a bound."
        raise CommandError(told) from error
