"""What every subcommand does: take options, operate, and report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from ..words import as_json


class Subcommand:
    """One thing that people do to the queue. Its docstring's first line is its help."""

    only_reads: ClassVar[bool] = False
    """Whether it only looks: in a read-only transaction then, in which no statement may last."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options that this subcommand has beyond those of all."""

    def run(self, *, database: str | None, **options: Any) -> Any:
        """Do it, and return the report: what JSON can hold."""
        raise NotImplementedError(f"{type(self).__name__} must say what it does.")

    def lines(self, report: Any) -> Iterator[str]:
        """Yield the report for people."""
        raise NotImplementedError(f"{type(self).__name__} must say how it reports.")

    def json_lines(self, report: Any) -> Iterator[str]:
        """Yield the report for programs."""
        yield as_json(report)

    def has_failed(self, report: Any) -> bool:  # noqa: ARG002 - most have done what they report
        """Whether the report is one that a script has to act on. The exit code says so."""
        return False
