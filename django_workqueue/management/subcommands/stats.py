"""``manage.py workqueue stats``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from ...lifecycle import operate
from ...store.watch import QueueStats
from ..words import table
from .base import Subcommand

_COUNTS = ("ready", "scheduled", "blocked", "parked", "leased", "dead")
_HEAD = ("queue", *_COUNTS, "oldest", "workers", "")


class Stats(Subcommand):
    """Shows every queue: what waits, for how long, what runs, and who serves it."""

    only_reads = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which queue."""
        parser.add_argument("--queue", help="Name of a queue, or a pattern (default: all).")

    def run(self, *, database: str | None, **options: Any) -> list[dict[str, Any]]:
        """Read the statistics."""
        wanted = [options["queue"] or "*"]
        return [_described(row) for row in operate.stats(database=database) if operate.matches(wanted, row.queue)]

    def lines(self, report: list[dict[str, Any]]) -> Iterator[str]:
        """Say one line for each queue."""
        if not report:
            yield "There is no such queue."
            return
        yield from table([_HEAD, *map(_cells, report)], numbers=range(1, len(_HEAD) - 1), gap=1)


def _described(row: QueueStats) -> dict[str, Any]:
    return {**asdict(row), "capped": sorted(row.capped), "depth": row.depth, "unserved": row.unserved}


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    counts = [f"{row[state]}{'+' if state in row['capped'] else ''}" for state in _COUNTS]
    remark = "paused" if row["paused"] else "unserved" if row["unserved"] else ""
    return (row["queue"], *counts, f"{row['oldest_age_seconds']:.0f}s", str(row["workers"]), remark)
