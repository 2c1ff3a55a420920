"""``manage.py workqueue health``: an exit code for whoever watches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from ...lifecycle.health import Bounds, health
from ...lifecycle.warn import KINDS, warnings
from .. import arguments
from ..words import folded, span, table
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
    """Checks the queue against bounds, and for what is wrong. The exit code is 1 when it is not healthy."""

    only_reads = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the bounds, the queues that they hold for, and what else is looked for."""
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
        parser.add_argument(
            "--warnings",
            nargs="?",
            const=KINDS,
            type=arguments.words_of(KINDS),
            metavar="KINDS",
            help=f"Fail on what is wrong beside bounds: of all kinds, or of these: {', '.join(KINDS)}.",
        )
        parser.add_argument(
            "--ignore",
            type=arguments.words_of(KINDS),
            metavar="KINDS",
            help="Look for all kinds but these.",
        )

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Look, and compare."""
        given = {name: options[name] for name in _SENTENCES}
        wrong = warnings(kinds=_kinds(options), database=database)
        found = health(Bounds(queues=options["queues"] or (), **given), database=database)
        return {
            "healthy": not (found.breaches or wrong),
            "breaches": [asdict(each) for each in found.breaches],
            "warnings": [asdict(each) for each in wrong],
            "queues": [asdict(each) for each in found.queues],
        }

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say whether all is well, what is not, and how the queues stand."""
        yield "healthy" if report["healthy"] else "NOT HEALTHY"
        for breach in report["breaches"]:
            yield f"{breach['queue']}: {_sentence(breach)}."
        for each in report["warnings"]:
            yield from folded(f"{each['kind']}: {each['fact']}", first="")
            yield from folded(each["remedy"])
        if report["queues"]:
            yield from table([_HEAD, *map(_cells, report["queues"])], numbers=range(1, 5))

    def has_failed(self, report: dict[str, Any]) -> bool:
        """Whether a bound is passed, or something is wrong."""
        return not report["healthy"]


def _kinds(options: dict[str, Any]) -> list[str]:
    """Return the kinds of warnings to look for: none unless some are asked for, or some are to be left out."""
    asked, ignored = options["warnings"], options["ignore"]
    chosen = KINDS if asked is None and ignored else asked or ()
    return [kind for kind in chosen if kind not in (ignored or ())]


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
