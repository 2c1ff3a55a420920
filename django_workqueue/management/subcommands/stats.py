"""``manage.py workqueue stats``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from ...lifecycle import operate
from ...store.watch import QueueStats

_COUNTS = ("ready", "scheduled", "blocked", "parked", "leased", "dead")
_HEAD = ("queue", *_COUNTS, "oldest", "workers", "")


class Stats:
    """Shows every queue: what waits, for how long, what runs, and who serves it."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add nothing."""

    def run(self, *, database: str | None, **_others: Any) -> list[dict[str, Any]]:
        """Read the statistics."""
        return [_described(row) for row in operate.stats(database=database)]

    def lines(self, report: list[dict[str, Any]]) -> Iterator[str]:
        """Say one line for each queue."""
        table = [_HEAD, *map(_cells, report)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for name, *cells in table:
            padded = [cell.rjust(width) for cell, width in zip(cells[:-1], widths[1:-1], strict=True)]
            yield "  ".join([name.ljust(widths[0]), *padded, cells[-1]]).rstrip()


def _described(row: QueueStats) -> dict[str, Any]:
    return {**asdict(row), "capped": sorted(row.capped), "depth": row.depth, "unserved": row.unserved}


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    counts = [f"{row[state]}{'+' if state in row['capped'] else ''}" for state in _COUNTS]
    remark = "paused" if row["paused"] else "unserved" if row["unserved"] else ""
    return (row["queue"], *counts, f"{row['oldest_age_seconds']:.0f}s", str(row["workers"]), remark)
