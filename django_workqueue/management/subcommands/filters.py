"""The options by which jobs are chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandParser

from ...lifecycle.listing import Wanted
from .. import arguments

MOST = 10_000
"""Jobs that one command lists or changes."""

_NAMES = {
    "queue": "Name of the queue.",
    "tenant": "Name of the tenant.",
    "task": "Dotted path under which the task's jobs are stored.",
    "error": "Class that ended the last attempt: its dotted path, or the last part of it.",
}


def add_filters(
    parser: CommandParser, *, states: Iterable[str] = (), has_groups: bool = False, limit: int, most: int = MOST
) -> None:
    """Add the options for what is looked for, and for how many."""
    for name, words in _NAMES.items():
        parser.add_argument(f"--{name}", help=words)
    if has_groups:
        parser.add_argument(
            "--group", type=arguments.fingerprint, help='A group of one cause, as "dead --groups" names it.'
        )
    if states := list(states):
        parser.add_argument("--state", choices=states, metavar="STATE", help=f"One of: {', '.join(states)}.")
    parser.add_argument(
        "--limit", type=arguments.whole(1, most), default=limit, help=f"How many at most, up to {most} ({limit})."
    )


def wanted(options: dict[str, Any]) -> Wanted:
    """Return what the options look for."""
    named = {name: options[name] for name in _NAMES}
    return Wanted(state=options.get("state"), group=options.get("group"), **named)
