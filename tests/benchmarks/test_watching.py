"""The watch over a drain, and the rates that are read off it."""

from __future__ import annotations

import time

import pytest

from testproject.benchmarks import watching
from testproject.benchmarks.errors import BenchmarkError
from testproject.benchmarks.watching import MARKERS, Timeline, Watch, marker_numbers


class Processes:
    """Stands for a fleet whose only process ended with ``exit_code``."""

    name, log = "worker-1", "what it printed"

    def __init__(self, exit_code=None):
        self.exit_code = exit_code
        self.workers = [self]


def watch(markers_left, jobs_left=lambda: 0, *, exit_code=None, jobs=1000):
    """Return a watch on numbers instead of a database."""
    return Watch(jobs=jobs, markers_left=markers_left, jobs_left=jobs_left, fleet=Processes(exit_code))


@pytest.mark.parametrize("jobs", [1, 2, 99, 100, 101, 100_000])
def test_markers_go_from_first_to_last(jobs):
    """Without the last job a drain would be over before its end."""
    numbers = marker_numbers(jobs)

    assert (numbers[0], numbers[-1]) == (1, jobs)
    assert len(numbers) == len(set(numbers)) == min(jobs, MARKERS)


def test_rate_counts_from_start_to_end():
    """The clock runs from the start until all are settled, whenever the looks were."""
    timeline = Timeline(1000, begun=10.0, points=[(10.5, 0.0), (11.0, 0.25), (12.0, 1.0)])

    assert timeline.rate() == 500
    assert timeline.ended == 12.0


def test_rate_of_a_part_lies_between_looks():
    """A fifth rarely ends at a look: its moment is taken from those around it."""
    timeline = Timeline(1000, begun=0.0, points=[(1.0, 0.5), (3.0, 1.0)])

    assert timeline.moment_of(0.25) == 0.5
    assert timeline.moment_of(0.75) == 2.0
    assert timeline.rate(0.5, 1.0) == 250


def test_nothing_is_over_while_a_job_is_left():
    """The last marker may be settled before its neighbours: then all are counted until none is left."""
    left = iter([2, 1, 0])

    timeline = watch(lambda: 0, lambda: next(left)).follow(time.monotonic(), look_seconds=0)

    assert [share for _, share in timeline.points] == [0.99, 0.99, 1.0]


def test_part_of_a_drain_can_be_enough():
    """A million jobs need not be waited for when a tenth tells the rate."""
    left = iter([100, 80, 40])

    timeline = watch(lambda: next(left)).follow(time.monotonic(), until=0.5, look_seconds=0)

    assert len(timeline.points) == 3


def test_failed_process_ends_the_watch():
    """A worker that dies must not be waited for, and what it printed is the reason."""
    with pytest.raises(BenchmarkError, match="what it printed"):
        watch(lambda: 100, exit_code=1).follow(time.monotonic(), look_seconds=0)


def test_standstill_ends_the_watch(monkeypatch):
    """A drain that stops moving ends by itself."""
    monkeypatch.setattr(watching, "STALLED_SECONDS", 0)

    with pytest.raises(BenchmarkError, match="No job was settled"):
        watch(lambda: 100).follow(time.monotonic(), look_seconds=0)
