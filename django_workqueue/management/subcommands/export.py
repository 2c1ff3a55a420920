"""``manage.py workqueue export``: jobs as lines of JSON, to be taken along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.core.management.base import CommandParser

from ...domain.states import Ending, JobState
from ...lifecycle import listing
from ...lifecycle.exporting import BATCH, MOST_EXPORTED, as_dict
from ..words import as_json
from .base import Subcommand
from .filters import add_filters, wanted

DEAD = "dead"


class Export(Subcommand):
    """Writes jobs as lines of JSON, newest first: the live ones, or those in one state."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is looked for, how many, and where to begin."""
        states = [*JobState.values, *Ending.values, DEAD]
        add_filters(parser, states=states, has_groups=True, limit=MOST_EXPORTED, most=MOST_EXPORTED)
        parser.add_argument("--after", help="Begin behind the place that an earlier export ended with.")

    def run(self, *, database: str | None, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield each job, read in batches: however many there are, few are in memory."""
        looked_for, after, left = wanted(options), options["after"], options["limit"]
        is_dead = looked_for.state == DEAD or looked_for.group is not None
        read = listing.dead if is_dead else listing.jobs
        looked_for = replace(looked_for, state=None) if is_dead else looked_for
        while left:
            page = read(looked_for, after=after, limit=min(left, BATCH), database=database)
            yield from map(as_dict, page.rows)
            left, after = left - len(page.rows), page.next
            if after is None:
                return
        yield {"left_out": True, "next": after}

    def lines(self, report: Iterator[dict[str, Any]]) -> Iterator[str]:
        """Write one line for each."""
        return map(as_json, report)

    json_lines = lines
