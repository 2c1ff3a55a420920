"""What every subcommand does: take options, operate, and report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from django.core.management.base import CommandParser


class Subcommand(Protocol):
    """One thing that people do to the queue. Its docstring's first line is its help."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options that this subcommand has beyond those of all."""

    def run(self, *, database: str | None, **options: Any) -> Any:
        """Do it, and return the report: what JSON can hold."""

    def lines(self, report: Any) -> Iterator[str]:
        """Yield the report for people."""
