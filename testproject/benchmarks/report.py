"""The outcome as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

from .bench import Bench
from .figures import Spread
from .rounds import Outcome

HEADINGS = ("figure", "median", "min", "max", "target", "", "absolute (medians)")
VERDICTS = {True: "met", False: "MISSED", None: ""}
PACKAGES = ("django", "psycopg", "django-tasks-db", "pgqueuer", "asyncpg", "uvloop")


def heading(where: dict[str, Any]) -> Iterator[str]:
    """Yield the lines above the table."""
    yield ", ".join(f"{name} {value}" for name, value in where.items() if name != "complaints")
    for complaint in where["complaints"]:
        yield f"A measured process complained: {complaint}"


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a table."""
    rows = [HEADINGS, *map(_row, outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        yield "  ".join(_aligned(row, widths)).rstrip()


def _row(outcome: Outcome) -> tuple[str, ...]:
    figure, values = outcome.figure, outcome.values
    limits = (str(figure.target or ""), VERDICTS[outcome.is_met])
    numbers = (short(values.median), short(values.least), short(values.most))
    return (figure.name, *numbers, *limits, _absolute(outcome))


def _absolute(outcome: Outcome) -> str:
    medians = [short(spread.median) for spread in outcome.readings.values()]
    return f"{' against '.join(medians)} {outcome.figure.unit}".rstrip()


def _aligned(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.rjust(width) if 1 <= column <= 3 else cell.ljust(width)


def short(value: float) -> str:
    """Return a number with three digits, or whole where it is large."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def as_json(outcomes: Sequence[Outcome], surroundings: dict[str, Any]) -> dict[str, Any]:
    """Return figures and readings by name, with where they were measured."""
    readings = {name: _spread(spread) for outcome in outcomes for name, spread in outcome.readings.items()}
    return {
        "surroundings": surroundings,
        "figures": {outcome.figure.name: _figure(outcome) for outcome in outcomes},
        "readings": readings,
    }


def _figure(outcome: Outcome) -> dict[str, Any]:
    figure = outcome.figure
    return {
        **_spread(outcome.values),
        "target": str(figure.target) if figure.target else None,
        "met": outcome.is_met,
        "over": figure.over,
        "under": figure.under,
        "unit": figure.unit,
    }


def _spread(spread: Spread) -> dict[str, Any]:
    return {"median": spread.median, "min": spread.least, "max": spread.most, "rounds": list(spread.rounds)}


def surroundings(bench: Bench, rounds: int) -> dict[str, Any]:
    """Return what the figures depend on besides the code."""
    return {
        "scale": bench.scale,
        "rounds": rounds,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **dict(_versions()),
        **(bench.database.describe() if bench.uses_postgresql else {}),
        "complaints": bench.complaints,
    }


def _versions() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
