"""``manage.py benchmark`` with a few hundred jobs: it works, prints and writes; its numbers say nothing."""

from __future__ import annotations

import json
from importlib.util import find_spec
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from testproject.benchmarks import catalogue

TINY = 0.002
FAMILIES = [module.__name__.rpartition(".")[2] for module in catalogue.FAMILIES]
#: All pages of the admin, three times over, take minutes: test_month tries their parts.
ON_POSTGRESQL = [name for name in FAMILIES if name not in {"sqlite", "screens"}]


def benchmark(file, *options):
    """Run one tiny round and return the table's lines and the JSON."""
    out = StringIO()
    call_command(
        "benchmark", *options, "--scale", str(TINY), "--rounds", "1", "--json", str(file), stdout=out, stderr=StringIO()
    )
    return out.getvalue().splitlines(), json.loads(file.read_text())


def check(lines, outcome, *names, peers=False):
    """Check that every figure of ``names`` is printed and written, and that nobody complained."""
    figures, _ = catalogue.choose(names, peers=peers)
    assert outcome["surroundings"]["complaints"] == []
    assert [line.split()[0] for line in lines[2:]] == [figure.name for figure in figures]
    assert set(outcome["figures"]) == {figure.name for figure in figures}
    assert set(outcome["readings"]) == {reading for figure in figures for reading in figure.readings}
    assert all(spread["median"] > 0 for spread in outcome["readings"].values())
    assert outcome["surroundings"]["scale"] == TINY


@pytest.mark.postgresql
def test_worker_is_measured_against_the_bound(tmp_path):
    """The headline figure: a real worker process against a bare loop, on a server that says how durable it is."""
    lines, outcome = benchmark(tmp_path / "out.json", "--only", "drain.worker_over_bound")

    check(lines, outcome, "drain.worker_over_bound")
    assert outcome["surroundings"]["synchronous_commit"] == "on"
    assert outcome["surroundings"]["fsync"] in {"on", "off"}


@pytest.mark.acceptance
@pytest.mark.postgresql
@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", ON_POSTGRESQL)
def test_family_is_measured(tmp_path, family):
    """Each family of figures can be had by itself, complete."""
    lines, outcome = benchmark(tmp_path / "out.json", "--only", family)

    check(lines, outcome, family)


@pytest.mark.sqlite
@pytest.mark.timeout(300)
def test_sqlite_is_measured_without_a_server(tmp_path, monkeypatch):
    """The embedded database needs no PostgreSQL on the machine."""
    monkeypatch.setenv("PG_BIN", "/nowhere")

    lines, outcome = benchmark(tmp_path / "out.json", "--only", "sqlite")

    check(lines, outcome, "sqlite")
    assert "postgresql" not in outcome["surroundings"]


@pytest.mark.acceptance
@pytest.mark.postgresql
@pytest.mark.timeout(600)
@pytest.mark.skipif(find_spec("pgqueuer") is None, reason="needs the dependency group bench")
def test_peers_are_measured(tmp_path):
    """Other queues settle the same jobs on the same server."""
    names = ["drain.over_pgqueuer", "drain.over_django_tasks_db", "enqueue.many_over_pgqueuer"]

    lines, outcome = benchmark(tmp_path / "out.json", "--peers", "--only", ",".join(names))

    check(lines, outcome, *names, peers=True)


@pytest.mark.skipif(find_spec("pgqueuer") is not None, reason="needs an environment without them")
def test_missing_peers_are_named():
    """Whoever asks for them learns what to install."""
    with pytest.raises(CommandError, match=r"pgqueuer.*--group bench"):
        call_command("benchmark", "--peers")


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--only", "nonsense"], "'nonsense'"), (["--rounds", "0"], "--rounds is 0"), (["--scale", "0"], "--scale is 0")],
)
def test_what_cannot_be_measured_is_refused(options, message):
    """At once, not after half an hour."""
    with pytest.raises(CommandError, match=message):
        call_command("benchmark", *options)
