"""``manage.py runworkers``: run jobs until told to stop."""

from __future__ import annotations

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.utils.connection import ConnectionDoesNotExist

from ...worker.options import WorkerOptions
from ...worker.process import EXIT_USAGE, WorkerProcess, leave
from .. import arguments
from ..base import QueueCommand


class Command(QueueCommand):
    """Parse, check, and hand over to the worker."""

    help = "Runs the jobs of the work queue: claims, executes, retries, and reaps what lost workers left behind."

    def add_arguments(self, parser: CommandParser) -> None:
        """Options with a value may also come from the environment, as WORKQUEUE_ and their name in capitals."""
        # The defaults of the class: an instance would read the settings before the checks have looked at them.
        concurrency = WorkerOptions.__dataclass_fields__["concurrency"].default
        add = parser.add_argument
        add(
            "--queues",
            type=arguments.names,
            default=_env("QUEUES", "*"),
            help="Names or patterns, with commas between; they take turns (default: *).",
        )
        add(
            "--exclude-queues",
            type=arguments.names,
            default=_env("EXCLUDE_QUEUES", ""),
            help="Names or patterns not to serve.",
        )
        add(
            "--strict-order",
            action="store_true",
            help="Serve a queue only while those listed before it have nothing ready.",
        )
        add(
            "--concurrency",
            type=int,
            default=_env("CONCURRENCY", str(concurrency)),
            help=f"Jobs at the same time (default: {concurrency}).",
        )
        add("--name", default=_env("NAME", ""), help="A name to recognise this worker by.")
        add("--burst", action="store_true", help="Stop when nothing is ready and nothing runs.")
        add("--max-jobs", type=int, default=_env("MAX_JOBS", None), help="Stop after so many jobs.")
        add(
            "--poll-interval",
            type=arguments.duration,
            default=_env("POLL_INTERVAL", None),
            help="Longest time between two looks when idle (default: WORKQUEUE['POLL_INTERVAL']).",
        )
        add(
            "--no-listen",
            action="store_false",
            dest="listen",
            help="Do not listen for notifications; needed behind a transaction pooler.",
        )
        add(
            "--shutdown-timeout",
            type=arguments.duration,
            default=_env("SHUTDOWN_TIMEOUT", "25"),
            help="How long a stop waits for running jobs (default: 25 s).",
        )
        add(
            "--database",
            default=_env("DATABASE", None),
            help="Alias of the queue's database (default: WORKQUEUE['DATABASE']).",
        )

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run the worker and leave with its exit code."""
        names = WorkerOptions.__dataclass_fields__
        chosen = {name: value for name, value in given.items() if name in names and value is not None}
        try:
            worker = WorkerProcess(WorkerOptions(**chosen), say=self._say)
        except (ValueError, ImproperlyConfigured, ConnectionDoesNotExist) as error:
            raise CommandError(str(error), returncode=EXIT_USAGE) from error
        code = worker.run()
        leave(code, busy=worker.is_busy)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _env(name: str, default: str | None) -> str | None:
    return os.environ.get(f"WORKQUEUE_{name}", default)
