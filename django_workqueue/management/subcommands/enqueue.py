"""``manage.py workqueue enqueue``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from ...backend import WorkQueueBackend, requests_for
from ...conf import get_settings
from ...domain.contract import AnyTask
from ...domain.registry import resolve
from ...lifecycle import enqueue as enqueueing
from ...tasks import Call, WorkTask
from ...worker.process import EXIT_USAGE
from .. import arguments
from .base import Subcommand

_OPTIONS = {
    "queue": "queue_name",
    "tenant": "tenant",
    "priority": "priority",
    "delay": "run_after",
    "key": "dedupe_key",
}


class Enqueue(Subcommand):
    """Enqueues one job of a task."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the task, its arguments, and what else a job may be given."""
        parser.add_argument("task", metavar="PATH", help="Dotted path of the task.")
        parser.add_argument(
            "--args",
            dest="positional",
            type=arguments.json_of(list),
            help="Positional arguments: a list in JSON.",
        )
        parser.add_argument(
            "--kwargs",
            dest="keywords",
            type=arguments.json_of(dict),
            help="Keyword arguments: an object in JSON.",
        )
        parser.add_argument("--queue", help="Name of the queue (default: the task's).")
        parser.add_argument("--tenant", help="Name of the tenant (default: the task's).")
        parser.add_argument("--priority", type=int, help="From -100 to 100 (default: the task's).")
        parser.add_argument("--delay", type=arguments.duration, help="Run it not before this long from now: 90s, 15m.")
        parser.add_argument("--key", help="Dedupe key: one live job of it at most (default: the task's).")
        parser.add_argument("--dry-run", action="store_true", help="Enqueue nothing, and check whether it could be.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Check, and enqueue unless it is a dry run."""
        if database not in {None, get_settings().database}:
            raise CommandError(
                f"--database is {database!r}, but jobs are enqueued where WORKQUEUE['DATABASE'] says.",
                returncode=EXIT_USAGE,
            )
        task = _varied(resolve(options["task"]), options)
        call = Call(args=tuple(options["positional"] or ()), kwargs=options["keywords"] or {})
        [request] = requests_for(task, [call])
        report = {"id": None, "task": request.task, "queue": request.queue, "tenant": request.tenant}
        if options["dry_run"]:
            enqueueing.check(request)
            return {**report, "duplicate": False, "dry_run": True}
        result = task.enqueue(*call.args, **call.kwargs)
        return {**report, "id": result.id, "duplicate": getattr(result, "duplicate", False), "dry_run": False}

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say which job it is."""
        if report["dry_run"]:
            yield f"{report['task']} can be enqueued into {report['queue']!r}."
        elif report["duplicate"]:
            yield f"{report['id']}  was there before."
        else:
            yield f"{report['id']}  enqueued into {report['queue']!r}."


def _varied(task: AnyTask, options: dict[str, Any]) -> AnyTask:
    """Return the task with what is given for this job."""
    backend = task.get_backend()
    if not isinstance(backend, WorkQueueBackend):
        raise CommandError(
            f"{task.module_path} uses the backend {task.backend!r}, which stores nothing in this queue.",
            returncode=EXIT_USAGE,
        )
    given = {name: options[option] for option, name in _OPTIONS.items() if options[option] is not None}
    if given.keys() & {"tenant", "dedupe_key"} and not isinstance(task, WorkTask):
        raise CommandError(
            f"{task.module_path} is a task of django.tasks itself, without tenants and keys. "
            "Declare it with django_workqueue.task.",
            returncode=EXIT_USAGE,
        )
    return task.using(**given) if given else task
