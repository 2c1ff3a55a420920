"""The database of a run, and the environment of what it measures."""

from __future__ import annotations

import pytest

from testproject.benchmarks.database import Database, plain_environment, scratch_database
from testproject.benchmarks.errors import BenchmarkError


def test_other_vendors_are_refused(monkeypatch):
    """The development database of the demo is SQLite: an accident must not pass for a measurement."""
    monkeypatch.setenv("DATABASE_URL", "sqlite:////tmp/db.sqlite3")

    with pytest.raises(BenchmarkError, match="sqlite"), scratch_database():
        pass


def test_measured_processes_do_not_debug(monkeypatch):
    """With DEBUG every statement is recorded; Python's development mode checks what nobody measures."""
    monkeypatch.setenv("DEBUG", "true")
    monkeypatch.setenv("PYTHONDEVMODE", "1")
    monkeypatch.setenv("WORKQUEUE", '{"LEASE": 1}')
    monkeypatch.setenv("PGOPTIONS", "-c synchronous_commit=off")

    environment = plain_environment()

    assert environment["DEBUG"] == "false"
    assert not {"PYTHONDEVMODE", "WORKQUEUE", "PGOPTIONS"} & environment.keys()


def test_environment_names_the_database_to_every_driver():
    """Peers know nothing of DATABASE_URL."""
    environment = Database("postgres://someone:secret@example.org:5433/queue").environment

    assert environment == {
        "DATABASE_URL": "postgres://someone:secret@example.org:5433/queue",
        "PGHOST": "example.org",
        "PGPORT": "5433",
        "PGUSER": "someone",
        "PGPASSWORD": "secret",
        "PGDATABASE": "queue",
    }


@pytest.mark.postgresql
def test_run_leaves_no_database_behind():
    """It works in a database of its own, on a server that may hold others, and drops it."""
    with scratch_database() as database:
        name = database.value("SELECT current_database()")
        server = Database(database.url.replace(name, "postgres"))
        found = "SELECT count(*) FROM pg_database WHERE datname = %(name)s"
        assert name.startswith("dwq_benchmark_")
        assert server.value(found, {"name": name}) == 1

    assert server.value(found, {"name": name}) == 0
    server.close()


@pytest.mark.postgresql
def test_lock_holds_writers_and_lets_readers_pass():
    """It is the starting line of a drain."""
    with scratch_database() as database:
        database.execute("CREATE TABLE line (id int)")
        with database.locked("line") as line, database.connect() as writer:
            assert database.value("SELECT count(*) FROM line") == 0
            writer.execute("SET lock_timeout = '50ms'")
            with pytest.raises(Exception, match="lock timeout"):
                writer.execute("INSERT INTO line VALUES (1)")
            line.commit()
            writer.execute("INSERT INTO line VALUES (1)")

        assert database.value("SELECT count(*) FROM line") == 1
