"""The figures of each queue and task as a table of plain values, for a program that calculates with tables."""

from __future__ import annotations

from collections.abc import Iterator

from ..lifecycle.figures import Figures, TaskFigures, Times

SHARES = (50, 95, 99)
HEADS = (
    "queue", "task", "done", "failed_attempts", "died", "run_seconds_total",
    *(f"waited_seconds_p{share}" for share in SHARES), *(f"ran_seconds_p{share}" for share in SHARES),
)  # fmt: skip


def table(figures: Figures) -> Iterator[list[str]]:
    """Yield the heads and a row for each task in each queue. Times that nothing was counted for are empty."""
    yield list(HEADS)
    for each in figures.tasks:
        yield [harmless(each.queue), harmless(each.task), *_numbers(each)]


def harmless(text: str) -> str:
    """Return text that no program takes for a formula: anybody who may enqueue chooses the names."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def _numbers(of: TaskFigures) -> list[str]:
    counts = [str(count) for count in of.passed]
    return [*counts, f"{of.runs.total.total_seconds():.3f}", *_seconds(of.waits), *_seconds(of.runs)]


def _seconds(times: Times) -> list[str]:
    found = [times.percentile(share / 100) for share in SHARES]
    return ["" if each is None else f"{each.total_seconds():.3f}" for each in found]
