"""``manage.py workqueue dead``: what stopped for good, one by one or by cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from ...lifecycle import listing
from ...lifecycle.dead_groups import COUNTED, DeadGroup, dead_groups
from ...lifecycle.listing import Wanted
from ...worker.process import EXIT_USAGE
from ..words import cut, since, written
from .base import Subcommand
from .descriptions import lines_of_page, of_page
from .filters import add_filters, wanted


class Dead(Subcommand):
    """Lists dead letters, those that died last first; with --groups by cause."""

    only_reads = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is looked for, and where to begin."""
        add_filters(parser, has_groups=True, limit=50)
        parser.add_argument("--after", help="Begin behind the place that an earlier list ended with.")
        parser.add_argument(
            "--groups", action="store_true", help="List causes instead: task and kind of error, with how many died."
        )

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Read one page."""
        given = {"limit": options["limit"], "database": database}
        if not options["groups"]:
            return of_page(listing.dead(wanted(options), after=options["after"], **given))
        if wanted(options) != Wanted():
            raise CommandError("--groups tells of all dead letters. Leave the filters out.", returncode=EXIT_USAGE)
        return _of_groups(_number(options["after"] or "0"), **given)

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say two or three lines for each."""
        if "groups" in report:
            return _lines_of_groups(report)
        return lines_of_page(report, "There is no such dead letter.")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise CommandError(f"{text!r} is no place in this list. Take what an earlier page gave.", returncode=EXIT_USAGE)
    return int(text)


def _of_groups(number: int, *, limit: int, database: str | None) -> dict[str, Any]:
    page = dead_groups(page=number, size=limit, database=database)
    return {
        "groups": [_described(group) for group in page.groups],
        "next": str(number + 1) if page.has_more else None,
        "read_at": written(page.read_at),
    }


def _described(group: DeadGroup) -> dict[str, Any]:
    return {
        "group": group.fingerprint,
        "task": group.task,
        "error": group.error,
        "count": min(group.size, COUNTED),
        "capped": group.size > COUNTED,
        "first_died_at": written(group.first_died_at),
        "last_died_at": written(group.last_died_at),
        "latest": str(group.sample.pk),
    }


def _lines_of_groups(report: dict[str, Any]) -> Iterator[str]:
    for row in report["groups"]:
        first, last = (since(row[name], report["read_at"]) for name in ("first_died_at", "last_died_at"))
        yield f"{row['group']}  {row['count']}{'+' if row['capped'] else ''}  last {last}, first {first}"
        yield f"    {row['task']}"
        yield f"    {cut(row['error'], 76)}"
    if report["next"]:
        yield f"There may be more: --groups --after={report['next']}"
    elif not report["groups"]:
        yield "There is no dead letter."
