"""The files for deployment at work: their commands, their probes, their patience, by their own values."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import connection

from django_workqueue.models import Worker
from tests.docs import deployed
from tests.worker.test_vital import ask, free_port

from . import tasks
from .harness import books, failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]

TESTPROJECT = django_settings.BASE_DIR
LONG = settings(lease=600)


# -- Kubernetes --------------------------------------------------------------------------------------------------------


def kubelet(port: int) -> dict[str, bool]:
    """Ask the probes of the manifest once, at ``port`` instead of the container's; nobody there is a failure."""
    return {name: _passes(port, deployed.container()[name]["httpGet"]["path"]) for name in deployed.PROBES}


def _passes(port: int, path: str) -> bool:
    try:
        return 200 <= ask(port, path)[0] < 400
    except OSError:
        return False


def verdict(*, startup: bool, live: bool, ready: bool) -> dict[str, bool]:
    """Return answers as the kubelet knows them."""
    return dict(zip(deployed.PROBES, (startup, live, ready), strict=True))


def start_pod(fleet, port, **environment):
    """Start what the pod's container starts, at a port that is free here."""
    words = deployed.workers()["kubernetes.yaml"]
    options = [word for word in words if not word.startswith("--health-port")]
    return fleet.start(*options, f"--health-port={port}", ready=False, **environment)


@pytest.mark.postgresql
def test_probes_restart_nobody_for_a_database_that_is_away(fleet, diary, own_database):
    """Not at the start, not later: the worker is up and not ready, and serves when the database is back."""
    port = free_port()
    connection.close()
    own_database.stop()
    pod = start_pod(fleet, port)
    wait_until(lambda: kubelet(port) == verdict(startup=True, live=True, ready=False), "the pod to be up", seconds=60)

    own_database.start()
    wait_until(lambda: kubelet(port) == verdict(startup=True, live=True, ready=True), "the pod to serve", seconds=60)
    connection.close()
    own_database.stop()
    wait_until(lambda: kubelet(port) == verdict(startup=True, live=True, ready=False), "it to miss it", seconds=60)
    own_database.start()
    wait_until(lambda: kubelet(port) == verdict(startup=True, live=True, ready=True), "it to serve again", seconds=60)

    job = tasks.record.enqueue()
    wait_for_books([job], succeeded=1)
    assert pod.stop(deployed.patience()["kubernetes.yaml"]) == 0


def test_pod_that_ends_is_unready_and_alive_until_its_job_has_ended(fleet, diary):
    """SIGTERM takes it out of the rollout's count; SIGKILL is not needed."""
    port = free_port()
    job = tasks.hold.enqueue()
    pod = start_pod(fleet, port)
    wait_until(diary.starts, "the job to start", seconds=60)

    pod.signal(signal.SIGTERM)
    wait_until(lambda: kubelet(port) == verdict(startup=True, live=True, ready=False), "the pod to be unready")
    diary.open("gate")

    assert pod.wait(deployed.patience()["kubernetes.yaml"]) == 0
    wait_for_books([job], succeeded=1)


# -- systemd -----------------------------------------------------------------------------------------------------------


class Manager:
    """Plays systemd's part for the unit: starts what it starts, and listens."""

    def __init__(self, fleet, folder: Path) -> None:
        self._fleet = fleet
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._address = str(folder / "notify")
        self._socket.bind(self._address)
        self._socket.settimeout(60)

    def start(self, **environment):
        """Start the unit's worker and wait for READY=1, as a unit of Type=notify is waited for."""
        variables = {
            "NOTIFY_SOCKET": self._address,
            "WATCHDOG_USEC": str(int(deployed.unit()["WatchdogSec"]) * 1_000_000),
        }
        words = [word.replace("%H-%i", "host-1") for word in deployed.workers()["workers@.service"]]
        worker = self._fleet.start(*words, ready=False, **variables, **environment)
        self.wait_for(b"READY=1")
        return worker

    def wait_for(self, message: bytes) -> None:
        """Wait for a message and let others pass."""
        while self._socket.recv(100) != message:
            pass

    def close(self) -> None:
        """Listen no longer."""
        self._socket.close()


@pytest.fixture
def manager(fleet, tmp_path):
    """Yield a service manager."""
    made = Manager(fleet, tmp_path)
    yield made
    made.close()


def test_unit_is_active_once_its_worker_serves_and_its_successor_adopts(manager, diary):
    """Ready means registered; a crash costs the jobs seconds, not their leases."""
    job = tasks.hold.enqueue()
    crashed = manager.start(**LONG)
    assert Worker.objects.get().state == "running"
    wait_until(diary.starts, "the job to start")
    crashed.kill()

    successor = manager.start(**LONG)
    wait_until(lambda: len(diary.starts()) == 2, "the second attempt")
    manager.wait_for(b"WATCHDOG=1")
    successor.signal(signal.SIGTERM)
    manager.wait_for(b"STOPPING=1")
    diary.open("gate")

    assert successor.wait(deployed.patience()["workers@.service"]) == 0
    wait_for_books([job], succeeded=1)
    assert failure_kinds(job) == ["adopted"]


# -- containers --------------------------------------------------------------------------------------------------------


def test_health_check_of_the_image_passes_while_the_worker_beats(fleet, tmp_path):
    """It fails before the first beat, when the file has aged, and after the end."""
    file = tmp_path / "worker"
    check = deployed.instruction("HEALTHCHECK").partition("CMD ")[2].replace("/tmp/worker", str(file))

    def is_healthy() -> bool:
        return subprocess.run(["/bin/sh", "-c", check], check=False).returncode == 0

    assert not is_healthy()
    worker = fleet.start(*deployed.workers()["Dockerfile"], WORKQUEUE_HEARTBEAT_FILE=str(file))
    wait_until(is_healthy, "the first beat")

    worker.freeze()
    long_ago = time.time() - 61
    os.utime(file, (long_ago, long_ago))
    assert not is_healthy()
    worker.thaw()
    wait_until(is_healthy, "the next beat")
    assert worker.stop(75) == 0
    assert not is_healthy()


# -- Procfile ----------------------------------------------------------------------------------------------------------


def honcho(fleet, folder):
    """Start the Procfile's worker by honcho, in the test project with the example's environment."""
    for name in ("Procfile", "example.env"):
        shutil.copy(deployed.FOLDER / name, folder / name.replace("example", ""))
    (folder / "manage.py").symlink_to(TESTPROJECT / "manage.py")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    there = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', str(folder))
    return fleet.start("start", "worker", program=("-m", "honcho"), inside=there, PATH=path)


@pytest.mark.parametrize(
    ("gates", "end"),
    [(["gate"], ({"succeeded": 1}, [])), ([], ({"ready": 1}, ["interrupted"]))],
    ids=["ends", "too long"],
)
def test_ctrl_c_in_honcho_ends_the_worker_in_good_order(fleet, diary, tmp_path, gates, end):
    """The running job ends, or is given back before honcho's five seconds are over; no process is left."""
    job = tasks.hold.enqueue()
    started = honcho(fleet, tmp_path)
    wait_until(diary.starts, "the job to start")
    pid = Worker.objects.get().pid

    started.signal(signal.SIGINT)
    diary.open(*gates)
    started.wait(30)

    assert (books([job]), failure_kinds(job)) == end
    assert not Path(f"/proc/{pid}").exists()


def test_worker_of_the_procfile_takes_the_place_of_its_shell():
    """Without exec, some shells stay and keep the signal to themselves."""
    assert {shlex.split(command)[0] for command in deployed.procfile().values()} == {"exec"}
