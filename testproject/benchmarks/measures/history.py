"""``history.*``: whether a drain that keeps its finished jobs slows down where a million are kept already."""

from __future__ import annotations

from ..bench import Bench
from ..contestants import DAY_SECONDS, Ours
from ..drains import drain
from ..figures import Figure, Readings, Trial, at_least

JOBS = 100_000
MILLION = 1_000_000


def of(name: str, finished: int) -> Trial:
    """Return the trial that begins with so many finished jobs."""

    def run(bench: Bench) -> Readings:
        there = bench.sized(finished, least=0)
        return {name: drain(bench, Ours(kept_seconds=DAY_SECONDS, finished=there), bench.sized(JOBS)).rate()}

    return Trial(name, run, (name,))


TRIALS = (of("history.none", 0), of("history.million_finished", MILLION))

FIGURES = (
    Figure(
        name="history.million_finished_over_none",
        over="history.million_finished",
        under="history.none",
        target=at_least(0.9),
    ),
)
