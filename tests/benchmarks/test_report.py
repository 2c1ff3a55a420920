"""The table and the JSON."""

from __future__ import annotations

import json

from testproject.benchmarks import report
from testproject.benchmarks.figures import Figure, at_least
from testproject.benchmarks.rounds import judge

FIGURES = [
    Figure(name="drain.fast", over="drain.a", under="drain.b", target=at_least(0.7)),
    Figure(name="drain.slow", over="drain.b", under="drain.a", target=at_least(0.7)),
    Figure(name="cost.bytes", over="cost.bytes", unit="bytes"),
]
ROUNDS = [
    {"drain.a": 30_000.0, "drain.b": 15_000.0, "cost.bytes": 512.4},
    {"drain.a": 20_000.0, "drain.b": 16_000.0, "cost.bytes": 600.0},
    {"drain.a": 40_000.0, "drain.b": 10_000.0, "cost.bytes": 500.0},
]
WHERE = {"scale": 1.0, "rounds": 3, "fsync": "on", "complaints": []}


def test_table_shows_spread_target_and_absolute_numbers():
    """A ratio alone hides a slow machine, and a median alone hides the noise."""
    head, fast, slow, cost = report.table(judge(FIGURES, ROUNDS))

    assert head.split()[:5] == ["figure", "median", "min", "max", "target"]
    assert " ".join(fast.split()) == "drain.fast 2 1.25 4 >= 0.7 met 30,000 against 15,000 jobs/s"
    assert " ".join(slow.split()) == "drain.slow 0.5 0.25 0.8 >= 0.7 MISSED 15,000 against 30,000 jobs/s"
    assert " ".join(cost.split()) == "cost.bytes 512 500 600 512 bytes"


def test_columns_stand_below_each_other():
    """Numbers can be compared at a glance."""
    lines = list(report.table(judge(FIGURES, ROUNDS)))

    assert len({line.index(word) for line, word in zip(lines[1:3], ("met", "MISSED"), strict=True)}) == 1


def test_json_holds_every_round():
    """Whoever doubts a median can look at what it is made of."""
    outcome = json.loads(json.dumps(report.as_json(judge(FIGURES, ROUNDS), WHERE)))

    assert outcome["surroundings"] == WHERE
    assert outcome["figures"]["drain.fast"] == {
        "median": 2.0,
        "min": 1.25,
        "max": 4.0,
        "rounds": [2.0, 1.25, 4.0],
        "target": ">= 0.7",
        "met": True,
        "over": "drain.a",
        "under": "drain.b",
        "unit": "jobs/s",
    }
    assert outcome["readings"]["drain.b"]["rounds"] == [15_000.0, 16_000.0, 10_000.0]
    assert outcome["figures"]["cost.bytes"]["met"] is None


def test_heading_tells_where_and_what_went_wrong():
    """Figures are worth nothing without the server's settings, or with a worker that complained."""
    lines = list(report.heading({**WHERE, "complaints": ["Traceback"]}))

    assert "fsync on" in lines[0]
    assert lines[1:] == ["A measured process complained: Traceback"]
