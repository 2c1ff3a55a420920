"""``manage.py runworkers``: parse, check, hand over, and leave with the right code."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError

from django_workqueue.management.commands import runworkers
from django_workqueue.models import FinishedJob
from django_workqueue.worker.link import ENVIRONMENT, Link, Wire
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.process import EXIT_USAGE
from tests import samples


class Recorder:
    """Stands where the worker would, and remembers what it was asked."""

    asked: WorkerOptions
    link: Link | None
    is_busy = False

    def __init__(self, options, *, say, link=None):
        Recorder.asked, Recorder.link = options, link

    def run(self):
        """Leave at once."""
        return 0


@pytest.fixture
def asked(monkeypatch):
    """Return a function that calls the command and returns the options that it made."""
    monkeypatch.setattr(runworkers, "WorkerProcess", Recorder)

    def ask(*arguments: str) -> WorkerOptions:
        with pytest.raises(SystemExit) as left:
            call_command("runworkers", *arguments)
        assert left.value.code == 0
        return Recorder.asked

    return ask


def test_defaults_are_those_of_the_options(asked):
    """One place says what they are."""
    assert asked() == WorkerOptions()


def test_every_option_is_handed_over(asked):
    """As it was meant."""
    given = asked(
        "--queues=a,b*",
        "--exclude-queues=bad",
        "--strict-order",
        "--concurrency=3",
        "--name=shop",
        "--burst",
        "--max-jobs=7",
        "--max-memory=1.5G",
        "--max-lifetime=1h",
        "--poll-interval=2m",
        "--no-listen",
        "--shutdown-timeout=0",
        "--database=default",
        "--heartbeat-file=/run/shop/worker",
        "--health-port=8001",
        "--health-host=0.0.0.0",
        "--watchdog=5m",
    )

    assert given == WorkerOptions(
        queues=("a", "b*"),
        exclude_queues=("bad",),
        strict_order=True,
        concurrency=3,
        name="shop",
        burst=True,
        max_jobs=7,
        max_memory=1536 * 2**20,
        max_lifetime=timedelta(hours=1),
        poll_interval=timedelta(minutes=2),
        listen=False,
        shutdown_timeout=timedelta(),
        database="default",
        heartbeat_file=Path("/run/shop/worker"),
        health_port=8001,
        health_host="0.0.0.0",
        watchdog=timedelta(minutes=5),
    )


def test_options_may_come_from_the_environment(asked, monkeypatch):
    """As containers are configured; the command line wins."""
    monkeypatch.setenv("WORKQUEUE_QUEUES", "mail,default")
    monkeypatch.setenv("WORKQUEUE_CONCURRENCY", "3")
    monkeypatch.setenv("WORKQUEUE_SHUTDOWN_TIMEOUT", "1m")
    given = asked("--concurrency=5")

    assert (given.queues, given.concurrency) == (("mail", "default"), 5)
    assert given.shutdown_timeout == timedelta(minutes=1)


def test_processes_are_the_supervisors(asked, monkeypatch):
    """It is asked for them instead; one of its own processes, which runs the same command, is a worker."""
    monkeypatch.setattr(runworkers, "Supervisor", Recorder)
    monkeypatch.setattr(runworkers, "WorkerProcess", None)
    assert asked("--processes=2").processes == 2

    ours, theirs = socket.socketpair()
    with ours:
        Wire(ours).send({"number": 2})
        monkeypatch.setenv(ENVIRONMENT, str(theirs.detach()))
        monkeypatch.setattr(runworkers, "Supervisor", None)
        monkeypatch.setattr(runworkers, "WorkerProcess", Recorder)
        assert asked("--processes=2").processes == 2
        assert Recorder.link.welcome.number == 2
        Recorder.link.close()
    assert ENVIRONMENT not in os.environ


@pytest.mark.parametrize("argument", ["--max-memory=500", "--max-memory=much", "--max-lifetime=soon"])
def test_value_that_cannot_be_read_is_refused(argument):
    """A size without a unit could be meant as anything."""
    with pytest.raises(CommandError, match="Write"):
        call_command("runworkers", argument)


@pytest.mark.parametrize(
    "argument",
    [
        "--processes=0",
        "--max-lifetime=0",
        "--concurrency=0",
        "--max-jobs=0",
        "--queues=",
        "--database=nowhere",
        "--poll-interval=0",
    ],
)
def test_option_that_cannot_work_is_a_fault_of_usage(argument):
    """Told in a sentence, with its own exit code."""
    with pytest.raises(CommandError) as caught:
        call_command("runworkers", argument)

    assert caught.value.returncode == EXIT_USAGE


def test_settings_that_cannot_work_are_a_fault_of_usage(settings):
    """Nothing is started."""
    settings.WORKQUEUE = {"LEASE": 0}

    with pytest.raises(SystemCheckError) as caught:
        call_command("runworkers", skip_checks=False)

    assert caught.value.returncode == EXIT_USAGE


def test_hook_that_cannot_be_found_refuses_the_start(settings):
    """Otherwise every job would fail at it, one after the other."""
    settings.WORKQUEUE = {"RUN_HOOKS": ["tests.hooking.missing"]}

    with pytest.raises(SystemCheckError, match=r"E009.*tests\.hooking\.missing"):
        call_command("runworkers", skip_checks=False)


@pytest.mark.django_db(transaction=True)
def test_command_runs_what_waits_and_ends_the_process(process_environment):
    """From the shell, as a user has it."""
    samples.add.enqueue_many([(number, 1) for number in range(5)])

    done = subprocess.run(
        [sys.executable, "-m", "django", "runworkers", "--burst", "--concurrency=2"],
        env=process_environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "serves queues *" in done.stdout
    assert "5 jobs done, 0 attempts failed" in done.stdout
    assert FinishedJob.objects.count() == 5
