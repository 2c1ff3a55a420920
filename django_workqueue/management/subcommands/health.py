"""``manage.py workqueue health``: an exit code for whoever watches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from ...lifecycle.health import Bounds, health
from .. import arguments
from ..words import span, table
from .base import Subcommand

HIGHEST_BACKLOG, HIGHEST_DEAD, HIGHEST_WORKERS = 1_000_000, 50_000, 10_000
"""Bounds beyond which a look at the queue would itself be a load."""

_SENTENCES = {
    "max_age": "the oldest ready job has waited {found}, longer than {allowed}",
    "max_backlog": "more than {allowed} jobs are ready",
    "max_dead": "more than {allowed} dead letters wait for a decision",
    "min_workers": "{found} live workers serve it, fewer than {allowed}",
}
_HEAD = ("queue", "ready", "oldest", "dead", "workers", "")


class Health(Subcommand):
    """Checks the queue against bounds. The exit code is 1 when one is passed."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the bounds, and the queues that they hold for."""
        parser.add_argument("--max-age", type=arguments.duration, help="How long a ready job may wait: 90s, 15m.")
        parser.add_argument(
            "--max-backlog", type=arguments.whole(0, HIGHEST_BACKLOG), help="How many jobs may be ready in a queue."
        )
        parser.add_argument(
            "--max-dead",
            type=arguments.whole(0, HIGHEST_DEAD),
            help="How many dead letters of a queue may wait for a decision.",
        )
        parser.add_argument(
            "--min-workers", type=arguments.whole(1, HIGHEST_WORKERS), help="How many live workers must serve a queue."
        )
        parser.add_argument("--queues", type=arguments.names, help="Names or patterns of queues (default: all).")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Look, and compare."""
        given = {name: options[name] for name in _SENTENCES}
        found = health(Bounds(queues=options["queues"] or (), **given), database=database)
        return {
            "healthy": not found.breaches,
            "breaches": [asdict(each) for each in found.breaches],
            "queues": [asdict(each) for each in found.queues],
        }

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say whether all is well, what is not, and how the queues stand."""
        yield "healthy" if report["healthy"] else "NOT HEALTHY"
        for breach in report["breaches"]:
            yield f"{breach['queue']}: {_sentence(breach)}."
        if report["queues"]:
            yield from table([_HEAD, *map(_cells, report["queues"])], numbers=range(1, 5))

    def has_failed(self, report: dict[str, Any]) -> bool:
        """Whether a bound is passed."""
        return not report["healthy"]


def _sentence(breach: dict[str, Any]) -> str:
    tell = span if breach["bound"] == "max_age" else str
    return _SENTENCES[breach["bound"]].format(found=tell(breach["found"]), allowed=tell(breach["allowed"]))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    remark = "paused" if row["paused"] else ""
    return (
        row["queue"],
        str(row["ready"]),
        span(row["oldest_age_seconds"]),
        str(row["dead"]),
        str(row["workers"]),
        remark,
    )
