"""How a worker shows that it is well: to probes, to whoever looks at a file, and to systemd."""

from __future__ import annotations

import signal
import socket
import time

import pytest
from django.db import connection

from tests.worker.test_vital import ask, free_port

from . import tasks
from .harness import disguised, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(150)]


def answers(port: int) -> tuple[int, int]:
    """Return the status codes of liveness and readiness; zeros when nobody listens."""
    try:
        return ask(port, "/livez")[0], ask(port, "/readyz")[0]
    except OSError:
        return 0, 0


def test_worker_that_stops_is_live_and_not_ready(fleet, diary):
    """Nobody is to restart it, and its port is gone with it."""
    port = free_port()
    job = tasks.hold.enqueue()
    worker = fleet.start("--health-port", str(port), "--shutdown-timeout", "60", "--name", "web1")
    wait_until(lambda: answers(port) == (200, 200), "the worker to be ready")
    wait_until(diary.starts, "the job to start")

    worker.signal(signal.SIGTERM)
    wait_until(lambda: answers(port) == (200, 503), "readiness to end")
    facts = ask(port, "/readyz")[1]
    diary.open("gate")

    assert worker.wait() == 0
    assert facts["worker"].startswith("web1:")
    assert (facts["state"], facts["running"], facts["slots"]) == ("stopping", 1, 8)
    assert answers(port) == (0, 0)
    wait_for_books([job], succeeded=1)
    assert worker.complaints == []


@pytest.mark.postgresql
def test_database_that_is_away_is_no_reason_to_restart(fleet, diary, own_database):
    """The worker lives and waits for it; it only is not ready."""
    port = free_port()
    fleet.start("--health-port", str(port), "--poll-interval", "0.3")
    wait_until(lambda: answers(port) == (200, 200), "the worker to be ready")
    connection.close()

    own_database.stop()
    wait_until(lambda: answers(port) == (200, 503), "readiness to end", seconds=40)
    own_database.start()
    wait_until(lambda: answers(port) == (200, 200), "readiness to come back", seconds=40)


def test_stuck_dispatcher_is_seen_and_ended(fleet, diary, tmp_path):
    """Its file ages; the watchdog tells where it is stuck, and another worker has the job (celery/celery#621)."""
    file = tmp_path / "beat"
    job = tasks.hold.enqueue()
    options = ("--heartbeat-file", str(file), "--watchdog", "10", "--concurrency", "1")
    stuck = fleet.start(*options, program=disguised("stuck-dispatcher"), **settings(lease=2))
    wait_until(diary.starts, "the job to start")
    touched = file.stat().st_mtime
    assert time.time() - touched < 60

    assert stuck.wait(60) == 1
    assert file.stat().st_mtime <= touched + 1.5
    assert "although the database answers. The worker ends." in stuck.log
    assert "disguises.py" in stuck.log
    assert "in stick" in stuck.log
    diary.open("gate")
    fleet.start(**settings(lease=2))
    wait_for_books([job], succeeded=1)


def test_heartbeat_file_lives_as_long_as_the_worker(fleet, tmp_path):
    """It is touched also by one that has nothing to do, and while it runs a long job."""
    file = tmp_path / "beat"
    worker = fleet.start("--heartbeat-file", str(file))
    first = file.stat().st_mtime

    wait_until(lambda: file.stat().st_mtime > first, "another beat")

    assert worker.stop() == 0
    assert not file.exists()


def test_supervisor_answers_for_all_its_processes(fleet, tmp_path):
    """One port, one file, one service; systemd hears when all are ready, beats while they are well, and of the stop."""
    port, file = free_port(), tmp_path / "beat"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000000"}
        options = ("--processes", "2", "--health-port", str(port), "--heartbeat-file", str(file))
        supervisor = fleet.start(*options, ready=False, **environment)

        heard = [manager.recv(100)]
        while heard[-1] != b"READY=1":
            heard.append(manager.recv(100))
        code, facts = ask(port, "/readyz")
        assert code == 200
        assert {each["pid"] for each in facts["processes"]} == set(supervisor.children)
        assert file.exists()

        supervisor.signal(signal.SIGTERM)
        while heard[-1] != b"STOPPING=1":
            heard.append(manager.recv(100))
        assert supervisor.wait(30) == 0

    assert set(heard) == {b"WATCHDOG=1", b"READY=1", b"STOPPING=1"}
    assert not file.exists()
    assert supervisor.complaints == []


@pytest.mark.parametrize(("option", "value"), [("--heartbeat-file", "/no/such/folder/beat"), ("--watchdog", "1")])
def test_what_cannot_be_shown_is_a_fault_of_usage(fleet, option, value):
    """Told before anything is claimed."""
    worker = fleet.start(option, value, ready=False)

    assert worker.wait(40) == 2
    assert option in worker.log
