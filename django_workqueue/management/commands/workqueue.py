"""``manage.py workqueue``: what people and their cron jobs do to the queue."""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.db import OperationalError
from django.utils.connection import ConnectionDoesNotExist

from ...worker.process import EXIT_USAGE
from ..base import QueueCommand
from ..subcommands import SUBCOMMANDS


class Command(QueueCommand):
    """Parse, hand over to the subcommand, and print what it reports."""

    help = "Looks after the work queue. Each subcommand has its own --help."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the subcommands, each with the options of all."""
        subparsers = parser.add_subparsers(title="subcommands", dest="subcommand", required=True)
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
            report = chosen.run(database=database, **given)
        except (ImproperlyConfigured, ConnectionDoesNotExist) as error:
            raise CommandError(str(error), returncode=EXIT_USAGE) from error
        except OperationalError as error:
            raise CommandError(f"The database could not do it: {error}") from error
        if given["format"] == "json":
            self.stdout.write(json.dumps(report))
            return
        for line in chosen.lines(report):
            self.stdout.write(line)
