"""
``backlog.*``: whether the rate depends on how much waits.

The rate of the first 100,000 jobs of a million, against that of 10,000 jobs, which are drained several times since a
third of a second alone says little. Neither counts its first thousand jobs, in which a new worker learns how short they
are: of a hundred thousand that would be nothing, of ten thousand a tenth.
"""

from __future__ import annotations

from ..bench import Bench
from ..contestants import Ours
from ..drains import drain
from ..figures import Figure, Readings, Trial, at_least

MILLION, WINDOW = 1_000_000, 100_000
TEN_THOUSAND, TIMES = 10_000, 5
LEARNING = 1_000
CLOSE_LOOK_SECONDS = 0.005


def of_million(bench: Bench) -> Readings:
    """Drain the first tenth of a million."""
    jobs = bench.sized(MILLION, least=4_000)
    learning, window = LEARNING / MILLION, WINDOW / MILLION
    timeline = drain(bench, Ours(), jobs, until=window + 0.01)
    return {"backlog.million": timeline.rate(learning, window)}


def of_ten_thousand(bench: Bench) -> Readings:
    """Drain ten thousand, again and again."""
    jobs = bench.sized(TEN_THOUSAND)
    learning = LEARNING / TEN_THOUSAND
    timelines = [drain(bench, Ours(), jobs, look_seconds=CLOSE_LOOK_SECONDS) for _ in range(TIMES)]
    seconds = sum(each.moment_of(1.0) - each.moment_of(learning) for each in timelines)
    return {"backlog.ten_thousand": TIMES * jobs * (1 - learning) / seconds}


TRIALS = (
    Trial("backlog.million", of_million, ("backlog.million",)),
    Trial("backlog.ten_thousand", of_ten_thousand, ("backlog.ten_thousand",)),
)

FIGURES = (
    Figure(
        name="backlog.million_over_ten_thousand",
        over="backlog.million",
        under="backlog.ten_thousand",
        target=at_least(0.9),
    ),
)
