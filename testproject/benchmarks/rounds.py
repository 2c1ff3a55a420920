"""Running trials, round by round, and what comes of it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .bench import Bench
from .figures import Figure, Readings, Spread, Trial

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A figure with its values and those of its readings."""

    figure: Figure
    values: Spread
    readings: dict[str, Spread]

    @property
    def is_met(self) -> bool | None:
        """Whether the median reaches the target; None where there is none."""
        target = self.figure.target
        return None if target is None else target.is_met(self.values.median)


def run_rounds(bench: Bench, trials: Sequence[Trial], rounds: int, say: Say) -> list[Readings]:
    """
    Run each trial once in each round and return the readings of each round.

    Every other round runs them backwards: whoever always came first would always meet the same disk and cache.
    """
    results: list[Readings] = []
    for number in range(rounds):
        bench.round = number
        order = trials if number % 2 == 0 else list(reversed(trials))
        results.append(dict(_run_round(bench, order, f"round {number + 1} of {rounds}", say)))
    return results


def _run_round(bench: Bench, trials: Sequence[Trial], title: str, say: Say) -> Iterator[tuple[str, float]]:
    for trial in trials:
        readings = trial.run(bench)
        for name, value in readings.items():
            say(f"{title}: {name} {value:,.6g}")
        yield from readings.items()


def judge(figures: Sequence[Figure], rounds: Sequence[Readings]) -> list[Outcome]:
    """Return the outcome of each figure."""
    return [
        Outcome(
            figure,
            Spread(tuple(figure.value(readings) for readings in rounds)),
            {name: Spread(tuple(readings[name] for readings in rounds)) for name in figure.readings},
        )
        for figure in figures
    ]


@contextmanager
def orderly_end() -> Iterator[None]:
    """Let a request to terminate unwind the run, so that its processes and its server end with it."""
    previous = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
