"""``manage.py workqueue schedules``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from ...domain.states import OffReason
from ...lifecycle import reschedule
from ...lifecycle.declare import Synced, sync
from ..words import folded, table
from .base import Subcommand

_HEAD = ("schedule", "when", "next", "last", "")


class Schedules(Subcommand):
    """Lists every schedule with its next and last firing; with "sync", first makes them what the code says."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be done."""
        parser.add_argument(
            "act",
            nargs="?",
            choices=("list", "sync"),
            default="list",
            help='"sync" adds and changes what the code declares, and switches off what it no longer does.',
        )

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Sync if asked to, and read the schedules."""
        synced = sync(database=database) if options["act"] == "sync" else None
        states = [_described(state) for state in reschedule.schedules(database=database)]
        return {"synced": None if synced is None else _synced(synced), "schedules": states}

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say what was changed, and one line for each schedule."""
        for verb, names in (report["synced"] or {}).items():
            for name in names:
                yield f"{verb}: {name}"
        if not report["schedules"]:
            yield "There is no schedule."
            return
        yield from table([_HEAD, *map(_cells, report["schedules"])])
        for row in report["schedules"]:
            if row["enabled"] and row["fault"]:
                yield from folded(f"{row['name']}: {row['fault']}", first="")


def _synced(done: Synced) -> dict[str, list[str]]:
    return {**asdict(done), "refused": [f"{each.name}: {each.problem}" for each in done.refused]}


def _described(state: reschedule.ScheduleState) -> dict[str, Any]:
    times = {
        name: moment and moment.isoformat() for name, moment in (("next_at", state.next_at), ("last_at", state.last_at))
    }
    return asdict(state) | times


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["name"], row["when"], _time(row["next_at"]), _time(row["last_at"]), _remark(row))


def _time(text: str | None) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S%z}" if text else "-"


def _remark(row: dict[str, Any]) -> str:
    if not row["enabled"]:
        return f"off: {OffReason(row['off_reason'] or OffReason.PERSON).label.lower()}"
    return "at fault" if row["fault"] else "" if row["next_at"] else "over"
