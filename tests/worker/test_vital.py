"""Vital signs: a file, a port and the service manager, each only where it is asked for."""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket

import pytest

from django_workqueue.worker import vital as module
from django_workqueue.worker.health import Health, HealthServer
from django_workqueue.worker.notify import Notifier
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.vital import VitalSigns


def signs(health: Health | None = None, **options) -> VitalSigns:
    """Return the signs of a worker that is well."""
    well = health or Health(live=True, ready=True)
    return VitalSigns(WorkerOptions(**options), lambda: well, lambda: None)


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port: int, path: str) -> tuple[int, dict]:
    """Return what a probe hears."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


# -- the file ----------------------------------------------------------------------------------------------------------


def test_file_is_touched_by_progress_alone(tmp_path, monkeypatch):
    """A dispatcher that is stuck lets it age; it is gone at the end."""
    monkeypatch.setattr(module, "BEAT_SECONDS", 0)
    path = tmp_path / "beat"
    shown = signs(heartbeat_file=path)
    assert shown.start() == ""
    os.utime(path, (1, 1))

    shown.beat()
    assert path.stat().st_mtime > 1
    shown.close()
    assert not path.exists()


def test_file_is_touched_once_a_second_at_most(tmp_path):
    """However many rounds a busy dispatcher makes."""
    path = tmp_path / "beat"
    shown = signs(heartbeat_file=path)
    shown.start()
    shown.beat()
    os.utime(path, (1, 1))
    shown.beat()

    assert path.stat().st_mtime == 1
    shown.close()


def test_file_that_cannot_be_written_is_refused_at_the_start(tmp_path):
    """By the option's name."""
    assert signs(heartbeat_file=tmp_path / "no" / "beat").start().startswith("--heartbeat-file")


def test_file_that_cannot_be_written_any_more_does_not_end_the_worker(tmp_path, caplog):
    """It ages, or is missing, and whoever looks at it sees that."""
    folder = tmp_path / "run"
    folder.mkdir()
    shown = signs(heartbeat_file=folder / "beat")
    shown.start()
    (folder / "beat").unlink()
    folder.rmdir()
    with caplog.at_level(logging.WARNING):
        shown.beat()

    assert "heartbeat file cannot be written" in caplog.text
    shown.close()


def test_nothing_is_shown_that_was_not_asked_for(monkeypatch):
    """No thread, no file, no socket."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    shown = signs()

    assert shown.start() == ""
    assert not shown.wanted
    assert shown._server is None
    shown.close()


# -- the port ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "ready", "codes"), [(True, True, (200, 200)), (True, False, (200, 503)), (False, False, (503, 503))]
)
def test_probes_hear_by_the_status_code(live, ready, codes):
    """With the facts in JSON, for people."""
    port = free_port()
    shown = signs(Health(live=live, ready=ready, facts={"worker": "w"}), health_port=port)
    assert shown.start() == ""
    try:
        answers = [ask(port, path) for path in ("/livez", "/readyz?verbose")]
        nowhere = ask(port, "/")
    finally:
        shown.close()

    assert tuple(code for code, _ in answers) == codes
    assert answers[0][1] == {"status": "ok" if live else "failing", "worker": "w"}
    assert nowhere == (404, {"status": "unknown", "paths": ["/livez", "/readyz"]})


def test_client_that_says_nothing_holds_up_nobody():
    """Probes are answered beside it."""
    port = free_port()
    shown = signs(health_port=port)
    shown.start()
    try:
        with socket.create_connection(("127.0.0.1", port)):
            assert ask(port, "/livez")[0] == 200
    finally:
        shown.close()


def test_port_that_is_taken_is_refused_at_the_start():
    """By the option's name."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        assert signs(health_port=port).start() == (
            f"--health-port {port} on '127.0.0.1' cannot be had: Address already in use."
        )


def test_port_is_free_again_after_the_end():
    """Also when nobody ever asked."""
    port = free_port()
    for _ in range(2):
        server = HealthServer("127.0.0.1", port, lambda: Health(live=True, ready=True), lambda: None)
        server.close()


# -- the service manager -----------------------------------------------------------------------------------------------


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """Yield a socket at which a service manager would listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(str(tmp_path / "notify"))
        end.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield end


def test_service_manager_hears_each_state_once(manager, monkeypatch):
    """And a beat for each look that it takes, where it watches."""
    monkeypatch.setattr(module, "BEAT_SECONDS", 0)
    monkeypatch.setenv("WATCHDOG_USEC", "4000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    shown = signs()
    shown.start()
    assert (shown.wanted, shown.longest_silence) == (True, 2.0)

    for state in ("READY=1", "READY=1", "STOPPING=1"):
        shown.say(state)
    shown.beat()

    assert [manager.recv(100) for _ in range(3)] == [b"READY=1", b"STOPPING=1", b"WATCHDOG=1"]


def test_watchdog_of_another_process_is_not_answered(manager, monkeypatch):
    """The variables are inherited by whatever a service starts."""
    monkeypatch.setenv("WATCHDOG_USEC", "4000000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    shown = signs()
    shown.start()

    assert shown.longest_silence == float("inf")


def test_jobs_do_not_inherit_the_service_managers_address(manager):
    """What they start must not speak for the worker."""
    signs().start()

    assert "NOTIFY_SOCKET" not in os.environ


@pytest.mark.parametrize("address", ["/nowhere/notify", "@nobody-listens-here"])
def test_service_manager_that_is_not_there_changes_nothing(address):
    """The worker does its work."""
    Notifier(address).send("READY=1")


def test_abstract_address_is_reached():
    """Containers have them."""
    name = f"workqueue-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(f"\0{name}")
        end.settimeout(30)
        Notifier(f"@{name}").send("READY=1")

        assert end.recv(100) == b"READY=1"
