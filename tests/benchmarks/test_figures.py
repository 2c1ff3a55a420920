"""Ratios, targets, and the choice of what is measured."""

from __future__ import annotations

import pytest

from testproject.benchmarks import catalogue
from testproject.benchmarks.bench import Bench
from testproject.benchmarks.errors import BenchmarkError
from testproject.benchmarks.figures import Figure, Trial, at_least, at_most
from testproject.benchmarks.rounds import judge, run_rounds

#: What the project promises to measure, as programs read it.
PROMISED = {
    "drain.worker_over_bound",
    "drain.retained_over_bound",
    "drain.async_over_bound",
    "drain.two_processes_over_one",
    "enqueue.single_over_raw",
    "enqueue.many_over_copy",
    "latency.p50_over_floor",
    "latency.p99_over_floor",
    "backlog.million_over_ten_thousand",
    "tenants.hundred_over_one",
    "tenants.ten_thousand_over_one",
    "snapshot.last_fifth_over_first",
    "history.million_finished_over_none",
    "cost.statements_per_job",
    "cost.wal_bytes_per_job",
    "cost.idle_statements_per_minute",
    "sqlite.worker_over_bound",
}
PROMISED_WITH_PEERS = {
    "drain.over_pgqueuer",
    "drain.over_django_tasks_db",
    "drain.two_processes_over_pgqueuer",
    "enqueue.many_over_pgqueuer",
}
REPORTED_ONLY = {"cost.wal_bytes_per_job"}


def names(*only, peers=False):
    """Return the names of the chosen figures."""
    figures, _ = catalogue.choose(only, peers=peers)
    return {figure.name for figure in figures}


def test_every_promised_figure_is_there():
    """A figure that goes missing would be a target that nobody looks at any more."""
    assert names() >= PROMISED
    assert names(peers=True) >= PROMISED | PROMISED_WITH_PEERS


def test_promised_figures_have_targets():
    """What is only reported says so here."""
    without = {figure.name for figure in catalogue.FIGURES if figure.target is None}

    assert without & (PROMISED | PROMISED_WITH_PEERS) == REPORTED_ONLY


def test_peers_are_measured_on_request_alone():
    """Their packages are not there otherwise."""
    assert not names() & PROMISED_WITH_PEERS
    assert not any(trial.peers for trial in catalogue.choose()[1])


def test_names_choose_figures_and_families():
    """A name is a figure's or a family's, never a mere beginning."""
    assert names("latency.p50_over_floor") == {"latency.p50_over_floor"}
    assert names("tenants", "latency.p50_over_floor") == {
        "latency.p50_over_floor",
        "tenants.hundred_over_one",
        "tenants.ten_thousand_over_one",
    }


@pytest.mark.parametrize("name", ["tenant", "drain.over_pgqueuer", "nonsense"])
def test_unknown_name_is_refused(name):
    """A run of half an hour must not end without the figure that was asked for."""
    with pytest.raises(BenchmarkError, match=name):
        catalogue.choose([name])


def test_only_needed_trials_are_run():
    """One ratio costs two trials, not all of the family."""
    _, trials = catalogue.choose(["drain.worker_over_bound"])

    assert [trial.name for trial in trials] == ["drain.bound", "drain.worker"]


def test_every_reading_comes_from_one_trial():
    """Two trials with the same reading would overwrite each other."""
    given = [reading for trial in catalogue.TRIALS for reading in trial.gives]

    assert len(given) == len(set(given))
    assert {reading for figure in catalogue.FIGURES for reading in figure.readings} <= set(given)


def test_ratios_are_taken_within_a_round():
    """A machine that is slow in one round is slow for both sides of its ratio."""
    figure = Figure(name="a_over_b", over="a", under="b", target=at_least(2))

    [outcome] = judge([figure], [{"a": 10, "b": 5}, {"a": 3, "b": 1}, {"a": 40, "b": 20}])

    assert outcome.values.rounds == (2, 3, 2)
    assert (outcome.values.median, outcome.values.least, outcome.values.most) == (2, 2, 3)
    assert outcome.is_met


def test_targets_have_a_direction():
    """Rates must reach theirs, latencies stay below."""
    assert at_least(0.7).is_met(0.7)
    assert not at_least(0.7).is_met(0.69)
    assert at_most(1.5).is_met(1.5)
    assert not at_most(1.5).is_met(1.51)
    assert (str(at_least(0.7)), str(at_most(120))) == (">= 0.7", "<= 120")


def test_every_other_round_runs_backwards():
    """Whoever always came first would always meet the same disk and cache."""
    order = []

    def trial(name):
        def run(bench):
            order.append((bench.round, name))
            return {name: 1.0}

        return Trial(name, run, (name,))

    with Bench() as bench:
        run_rounds(bench, [trial("a"), trial("b")], 2, lambda _line: None)

    assert order == [(0, "a"), (0, "b"), (1, "b"), (1, "a")]
