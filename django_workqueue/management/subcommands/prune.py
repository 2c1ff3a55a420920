"""``manage.py workqueue prune``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from ...lifecycle import operate
from ...store.watch import COUNT_CAP
from .. import arguments
from .base import Subcommand

LARGEST_BATCH = 10_000
"""Databases bound the parameters of a statement, and a delete is to take well below a second."""

_KINDS = {
    "finished": "finished jobs",
    "dead": "dead letters",
    "workers": "workers not seen for a day",
    "minutes": "minutes of statistics",
    "workflows": "rows of workflows",
    "steps": "steps of jobs that are over",
    "folded": "minutes of statistics, added to their hours",
}


class Prune(Subcommand):
    """Deletes what has outlived its retention, in small batches."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the size of a batch, and whether to look only."""
        parser.add_argument(
            "--batch-size",
            type=arguments.whole(1, LARGEST_BATCH),
            default=1000,
            help=f"Rows of each kind in one transaction, up to {LARGEST_BATCH} (default: 1000).",
        )
        parser.add_argument("--dry-run", action="store_true", help=f"Delete nothing, and count up to {COUNT_CAP}.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Delete or count."""
        if not options["dry_run"]:
            pruned = operate.prune_all(batch=options["batch_size"], database=database)
            return {**asdict(pruned), "total": pruned.total, "dry_run": False, "capped": []}
        found = operate.prunable(database=database)
        capped = [kind for kind, count in asdict(found).items() if count >= COUNT_CAP]
        return {**asdict(found), "total": found.total, "dry_run": True, "capped": capped}

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say each count and their sum."""
        yield "To be deleted:" if report["dry_run"] else "Deleted:"
        for kind, words in _KINDS.items():
            yield f"{report[kind]:>10} {words}{' or more' if kind in report['capped'] else ''}"
        yield f"{report['total']:>10} in all{' or more' if report['capped'] else ''}"
