"""``manage.py runworkers``: parse, check, hand over, and leave with the right code."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError

from django_workqueue.management.commands import runworkers
from django_workqueue.models import FinishedJob
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.process import EXIT_USAGE
from tests import samples


class Recorder:
    """Stands where the worker would, and remembers what it was asked."""

    asked: WorkerOptions
    is_busy = False

    def __init__(self, options, *, say):
        Recorder.asked = options

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
        "--poll-interval=2m",
        "--no-listen",
        "--shutdown-timeout=0",
        "--database=default",
    )

    assert given == WorkerOptions(
        queues=("a", "b*"),
        exclude_queues=("bad",),
        strict_order=True,
        concurrency=3,
        name="shop",
        burst=True,
        max_jobs=7,
        poll_interval=timedelta(minutes=2),
        listen=False,
        shutdown_timeout=timedelta(),
        database="default",
    )


def test_options_may_come_from_the_environment(asked, monkeypatch):
    """As containers are configured; the command line wins."""
    monkeypatch.setenv("WORKQUEUE_QUEUES", "mail,default")
    monkeypatch.setenv("WORKQUEUE_CONCURRENCY", "3")
    monkeypatch.setenv("WORKQUEUE_SHUTDOWN_TIMEOUT", "1m")
    given = asked("--concurrency=5")

    assert (given.queues, given.concurrency) == (("mail", "default"), 5)
    assert given.shutdown_timeout == timedelta(minutes=1)


@pytest.mark.parametrize(
    "argument", ["--concurrency=0", "--max-jobs=0", "--queues=", "--database=nowhere", "--poll-interval=0"]
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
