"""``manage.py runworkers``: run jobs until told to stop."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.utils.connection import ConnectionDoesNotExist

from ...worker.link import Link
from ...worker.options import WorkerOptions
from ...worker.process import EXIT_RECYCLE, EXIT_USAGE, WorkerProcess
from ...worker.shutdown import leave
from ...worker.supervisor import Supervisor
from .. import arguments
from ..base import QueueCommand


class Command(QueueCommand):
    """Parse, check, and hand over to the worker."""

    help = "Runs the jobs of the work queue: claims, executes, retries, and reaps what lost workers left behind."

    def add_arguments(self, parser: CommandParser) -> None:
        """Options with a value may also come from the environment, as WORKQUEUE_ and their name in capitals."""
        _add_size(parser)
        _add_ends(parser)
        _add_connection(parser)
        _add_health(parser)

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run the worker and leave with its exit code."""
        names = WorkerOptions.__dataclass_fields__
        chosen = {name: value for name, value in given.items() if name in names and value is not None}
        link = Link.from_environment()
        try:
            options = WorkerOptions(**chosen)
            worker = (
                Supervisor(options, say=self._say)
                if options.processes and link is None
                else WorkerProcess(options, say=self._say, link=link)
            )
        except (ValueError, ImproperlyConfigured, ConnectionDoesNotExist) as error:
            raise CommandError(str(error), returncode=EXIT_USAGE) from error
        code = worker.run()
        leave(code, busy=worker.is_busy, over=code == EXIT_RECYCLE and link is None)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _add_size(parser: CommandParser) -> None:
    # The default of the class: an instance would read the settings before the checks have looked at them.
    slots = str(WorkerOptions.__dataclass_fields__["concurrency"].default)
    _add(parser, "--queues", arguments.names, "*", help="Names or patterns, with commas between; they take turns.")
    _add(parser, "--exclude-queues", arguments.names, "", help="Names or patterns not to serve.")
    parser.add_argument(
        "--strict-order",
        action="store_true",
        help="Serve a queue only while those listed before it have nothing ready.",
    )
    _add(parser, "--concurrency", int, slots, help=f"Jobs at the same time (default: {slots}).")
    _add(parser, "--processes", int, help="Keep so many processes running, each with --concurrency slots.")
    _add(parser, "--name", str, "", help="A stable name: what a dead worker of this name held is taken back at once.")


def _add_ends(parser: CommandParser) -> None:
    parser.add_argument("--burst", action="store_true", help="Stop when nothing is ready and nothing runs.")
    _add(parser, "--max-jobs", int, help="Stop, or be replaced, after so many jobs.")
    _add(
        parser,
        "--max-memory",
        arguments.size,
        help="Stop, or be replaced, between jobs once the process holds so much memory, e.g. 500M.",
    )
    _add(parser, "--max-lifetime", arguments.duration, help="Stop, or be replaced, between jobs at this age.")


def _add_connection(parser: CommandParser) -> None:
    _add(
        parser,
        "--poll-interval",
        arguments.duration,
        help="Longest time between two looks when idle (default: WORKQUEUE['POLL_INTERVAL']).",
    )
    parser.add_argument(
        "--no-listen",
        action="store_false",
        dest="listen",
        help="Do not listen for notifications; needed behind a transaction pooler.",
    )
    _add(
        parser,
        "--shutdown-timeout",
        arguments.duration,
        "25",
        help="How long a stop waits for running jobs (default: 25 s).",
    )
    _add(parser, "--database", str, help="Alias of the queue's database (default: WORKQUEUE['DATABASE']).")


def _add_health(parser: CommandParser) -> None:
    _add(parser, "--heartbeat-file", Path, help="A file that is touched while the worker makes progress.")
    _add(parser, "--health-port", arguments.whole(1, 65535), help="Answer /livez and /readyz on this port.")
    _add(parser, "--health-host", str, "127.0.0.1", help="The address for --health-port (default: 127.0.0.1).")
    _add(
        parser,
        "--watchdog",
        arguments.duration,
        help="End the process when it makes no progress for so long although the database answers.",
    )


def _add(
    parser: CommandParser, option: str, kind: Callable[[str], Any], default: str | None = None, **words: Any
) -> None:
    """Add an option with a value, which the environment may give as well."""
    variable = f"WORKQUEUE_{option[2:].replace('-', '_').upper()}"
    parser.add_argument(option, type=kind, default=os.environ.get(variable, default), **words)
