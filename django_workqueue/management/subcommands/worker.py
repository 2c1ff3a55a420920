"""``manage.py workqueue worker``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.core.management.base import CommandParser

from ...exceptions import WorkerNotFoundError, WorkerRequestError
from ...lifecycle import operate
from ...models import Worker as Row
from ...store import store_for
from .audit import CHANGE, DELETION, add_author, author, name_of_author
from .base import Subcommand

_ACTS: dict[str, Callable[..., Row]] = {
    "quiet": lambda name, **given: operate.ask_worker(name, "quiet", **given),
    "resume": lambda name, **given: operate.ask_worker(name, "work", **given),
    "stop": lambda name, **given: operate.ask_worker(name, "stop", **given),
    "forget": operate.forget_worker,
}
_DONE = {
    "quiet": "is asked to be quiet: it finishes what it has and claims nothing more",
    "resume": "is asked to work",
    "stop": "is asked to stop",
    "forget": "is forgotten; its jobs come back as soon as a worker lives",
}
_LOGGED = {"quiet": "Asked to be quiet.", "resume": "Asked to work.", "stop": "Asked to stop.", "forget": "Forgotten."}


class Worker(Subcommand):
    """Asks workers to be quiet, to resume or to stop, and forgets those that are gone."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what, to which, and who does."""
        parser.add_argument("act", choices=_ACTS, help="A live worker heeds it at its next heartbeat.")
        parser.add_argument("names", nargs="+", metavar="NAME", help="Names or ids, as 'workqueue workers' shows them.")
        add_author(parser)

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Do it to each; a refusal does not stop the others."""
        done: list[str] = []
        refused: list[dict[str, str]] = []
        for name in dict.fromkeys(options["names"]):
            try:
                self._act(name, options, database)
            except (WorkerNotFoundError, WorkerRequestError) as error:
                refused.append({"worker": name, "problem": str(error)})
            else:
                done.append(name)
        return {"act": options["act"], "workers": done, "refused": refused}

    def _act(self, name: str, options: dict[str, Any], database: str | None) -> None:
        """Do it and log it in one transaction."""
        act = options["act"]
        with store_for(database).transaction():
            worker = _ACTS[act](name, by=name_of_author(options), database=database)
            author(options).write(worker, DELETION if act == "forget" else CHANGE, _LOGGED[act])

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say what became of each."""
        for name in report["workers"]:
            yield f"Worker {name!r} {_DONE[report['act']]}."
        for each in report["refused"]:
            yield each["problem"]

    def has_failed(self, report: dict[str, Any]) -> bool:
        """Whether any was refused."""
        return bool(report["refused"])
