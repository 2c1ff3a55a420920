"""``manage.py workqueue workers``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from ...lifecycle import listing, operate
from .. import arguments
from ..words import since, written
from .base import Subcommand
from .filters import MOST

_COLUMNS = (
    "id", "name", "host", "pid", "queues", "slots", "running", "state", "done", "failed", "memory_bytes", "versions"
)  # fmt: skip


class Workers(Subcommand):
    """Lists worker processes, with those that went silent within a day."""

    only_reads = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which, and how many."""
        parser.add_argument("--queue", help="Name of a queue: only the workers that serve it.")
        parser.add_argument("--limit", type=arguments.whole(1, MOST), default=50, help="How many at most (50).")
        parser.add_argument("--after", help="Begin behind the worker that an earlier list ended with.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Read one page."""
        page = listing.workers(after=options["after"], limit=options["limit"], database=database)
        oldest = page.read_at - operate.silence()
        rows = [
            {name: getattr(row, name) for name in _COLUMNS}
            | {"started_at": written(row.started_at), "seen_at": written(row.seen_at), "alive": row.seen_at > oldest}
            for row in page.rows
            if options["queue"] is None or operate.serves(row.queues, options["queue"])
        ]
        return {"workers": rows, "next": page.next, "read_at": written(page.read_at)}

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say three lines for each."""
        for row in report["workers"]:
            seen, started = (since(row[name], report["read_at"]) for name in ("seen_at", "started_at"))
            yield f"{row['name']}  {row['state'] if row['alive'] else 'silent'}  seen {seen}"
            yield (
                f"    {row['running']} of {row['slots']} slots busy, {row['done']} done, {row['failed']} failed, "
                f"{row['memory_bytes'] // 1024**2} MB"
            )
            yield f"    {row['host']} pid {row['pid']}, started {started}, queues {row['queues']}"
        if report["next"]:
            yield f"There may be more: --after={report['next']}"
        elif not report["workers"]:
            yield "There is no such worker."
