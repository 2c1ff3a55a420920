"""The supervisor, with processes that are a few lines long."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from django_workqueue.worker import supervisor as module
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.process import EXIT_CLEAN, EXIT_CRASHED, EXIT_MIGRATIONS, EXIT_RECYCLE, EXIT_USAGE
from django_workqueue.worker.supervisor import LONGEST_PAUSE, MOST_FAILED_STARTS, Slot, Supervisor

from .jobs import wait_until

#: A process that serves until it is told otherwise. It speaks as Link does, without waiting for Django to load.
SERVE = """
import json, os, socket, sys, time
from pathlib import Path

end, diary = socket.socket(fileno=int(os.environ["_WORKQUEUE_LINK"])), Path(sys.argv[1])
lines = end.makefile()
welcome = json.loads(lines.readline())
starts, number = len(list(diary.iterdir())), welcome["number"]
me = diary / f"{time.monotonic_ns():020}"
me.write_text("")

def write(word):
    me.write_text(me.read_text() + word + " ")

def report(**facts):
    end.send(json.dumps(facts).encode() + b"\\n")

def serve(**facts):
    report(worker=str(os.getpid()), ready=True, **facts)
    try:
        for line in lines:
            write(json.loads(line))
            if "linger" not in sys.argv or "stop" in line and "deaf" not in sys.argv:
                sys.exit(0)
    except ConnectionError:
        pass
    write("gone")
"""


class Group:
    """A supervisor in a thread of the test."""

    def __init__(self, diary, body: str, *arguments: str, **options) -> None:
        self.diary, self.said = diary, []
        command = [sys.executable, "-c", SERVE + body, str(diary), *arguments]
        given = {"processes": 2, "shutdown_timeout": timedelta(seconds=20)} | options
        self.supervisor = Supervisor(WorkerOptions(**given), say=self.said.append, command=command)
        self.code = None
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        self.code = self.supervisor.run()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.supervisor.stop.request()
        self.supervisor.stop.request()
        self.thread.join(60)

    def wait(self) -> int:
        """Wait for the supervisor's end and return its exit code."""
        self.thread.join(60)
        assert self.code is not None, "The supervisor does not end."
        return self.code

    def ready(self) -> list[int]:
        """Return the ids of the processes that serve."""
        slots = self.supervisor._slots
        return [slot.serving.pid for slot in slots if slot.serving is not None and slot.serving.report.ready]

    def wait_until_ready(self) -> list[int]:
        """Wait until every place is taken."""
        wait_until(lambda: len(self.ready()) == len(self.supervisor._slots), "all to serve")
        return self.ready()

    def words(self) -> list[str]:
        """Return what each process was told, in the order of their starts."""
        return [file.read_text().strip() for file in sorted(self.diary.iterdir(), key=lambda file: file.name)]


@pytest.fixture
def patience(monkeypatch):
    """Let no pause between two starts be long."""
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.01)


def test_processes_are_started_and_stopped_together(tmp_path):
    """Each hears of the stop once."""
    with Group(tmp_path, "serve()") as group:
        group.wait_until_ready()
        group.supervisor.stop.request()

        assert group.wait() == EXIT_CLEAN
    assert group.words() == ["stop", "stop"]
    assert "keeps 2 processes with 8 slots" in group.said[0]
    assert group.said[-1].endswith("stopped.")


def test_second_request_is_passed_on(tmp_path):
    """To those that are still there."""
    with Group(tmp_path, "serve()", "linger", "deaf") as group:
        group.wait_until_ready()
        group.supervisor.stop.request()
        wait_until(lambda: group.words() == ["stop", "stop"], "the first order")
        group.supervisor.stop.request()
        wait_until(lambda: group.words() == ["stop now"] * 2, "the second order")
        for pid in group.ready():
            os.kill(pid, 9)

        assert group.wait() == EXIT_CRASHED


def test_process_that_is_killed_is_replaced(tmp_path, caplog):
    """At once, in the same place; the other one is left alone."""
    with Group(tmp_path, "serve()") as group, caplog.at_level(logging.WARNING):
        first, second = group.wait_until_ready()
        os.kill(first, 9)
        wait_until(lambda: first not in group.ready() and len(group.ready()) == 2, "the new one")

        assert group.ready()[1] == second
        assert caplog.messages == [f"Process {first} ended with exit code -9."]


@pytest.mark.parametrize("body", ["sys.exit(1)", "report(ready=True); sys.exit(1)"], ids=["start", "crash"])
def test_crash_loop_ends(tmp_path, body, patience):
    """With a code that says so, and a word about the reason."""
    with Group(tmp_path, body) as group:
        assert group.wait() == EXIT_CRASHED

    assert len(group.words()) in (MOST_FAILED_STARTS, MOST_FAILED_STARTS + 1)
    assert f"{MOST_FAILED_STARTS} starts in a row failed, the last with exit code 1." in group.said[-2]


def test_kills_by_jobs_are_no_crash_loop(tmp_path, patience):
    """The job pays for them, and the pool stays up (celery/celery#8610)."""
    body = f"starts > {2 * MOST_FAILED_STARTS} and serve(); report(ready=True); os.kill(os.getpid(), 9)"
    with Group(tmp_path, body, processes=1) as group:
        group.wait_until_ready()
        wait_until(lambda: len(group.words()) == 2 * MOST_FAILED_STARTS + 2, "the last start")
        group.supervisor.stop.request()

        assert group.wait() == EXIT_CLEAN


def test_crash_loop_is_seen_however_long_a_start_takes(tmp_path, patience, monkeypatch):
    """A project that loads slowly is no reason to take a process that never served for one that did."""
    monkeypatch.setattr(module, "QUICK_SECONDS", 1)
    with Group(tmp_path, "time.sleep(1.2); report(ready=True); sys.exit(1)") as group:
        assert group.wait() == EXIT_CRASHED


def test_crashes_after_long_service_are_not_added_up(tmp_path, patience, monkeypatch):
    """One now and then, over weeks, is a reason to start again each time."""
    monkeypatch.setattr(module, "QUICK_SECONDS", 0)
    body = f"starts > {2 * MOST_FAILED_STARTS} and serve(); report(ready=True); report(ready=False); sys.exit(1)"
    with Group(tmp_path, body, processes=1) as group:
        group.wait_until_ready()
        wait_until(lambda: len(group.words()) == 2 * MOST_FAILED_STARTS + 2, "the last start")
        group.supervisor.stop.request()

        assert group.wait() == EXIT_CLEAN


@pytest.mark.parametrize(("code", "words"), [(EXIT_USAGE, "options or settings"), (EXIT_MIGRATIONS, "migrations")])
def test_what_another_start_cannot_mend_ends_the_group(tmp_path, code, words):
    """With the same code, after the others have drained."""
    with Group(tmp_path, f"sys.exit({code}) if number == 2 else serve()") as group:
        assert group.wait() == code

    assert words in group.said[-2]


def test_burst_ends_when_every_process_has_ended(tmp_path):
    """None is started again, but one that was worn out meanwhile."""
    body = f"sys.exit({EXIT_RECYCLE} if starts == 0 else 0)"
    with Group(tmp_path, body, burst=True, processes=1) as group:
        assert group.wait() == EXIT_CLEAN

    assert len(group.words()) == 2


def test_worn_process_serves_until_its_successor_does(tmp_path):
    """Only then it retires, and it keeps its time to end what it runs."""
    with Group(tmp_path, "serve(worn='it is old' if starts == 0 else '')", "linger", processes=1) as group:
        wait_until(lambda: len(group.words()) == 2 and group.words()[0] == "retire", "the successor")
        [successor] = group.wait_until_ready()
        old = next(child for child in group.supervisor._children if child.pid != successor)

        assert old.poll() is None
        group.supervisor.stop.request()
        assert group.wait() == EXIT_CLEAN
    assert group.words() == ["retire stop", "stop"]


def test_worn_process_stays_while_its_successor_cannot_start(tmp_path, patience):
    """A bad release must not take down what still works."""
    body = "sys.exit(1) if 0 < starts < 4 else serve(worn='' if starts else 'it is old')"
    with Group(tmp_path, body, processes=1) as group:
        first = group.wait_until_ready()
        wait_until(lambda: len(group.words()) == 5, "the starts that failed")
        wait_until(lambda: group.ready() not in ([], first), "the successor")
        wait_until(lambda: sorted(group.words()) == ["", "", "", "", "retire"], "the worn one to retire")


def test_successor_is_told_whose_place_it_takes(tmp_path):
    """So that it does not refuse to start beside a living process of its name."""
    with Group(
        tmp_path, "write(','.join(welcome['siblings'])); serve(worn='' if starts else 'old')", processes=1
    ) as group:
        [first] = group.wait_until_ready()
        wait_until(lambda: len(group.words()) == 2 and group.words()[1], "the successor")

        assert group.words()[1] == str(first)


def test_process_that_does_not_end_is_killed(tmp_path, monkeypatch, caplog):
    """After its shutdown timeout and some more."""
    monkeypatch.setattr(module, "LATE_SECONDS", 0.2)
    body = "report(ready=True); time.sleep(600)"
    with Group(tmp_path, body, shutdown_timeout=timedelta()) as group, caplog.at_level(logging.ERROR):
        group.wait_until_ready()
        group.supervisor.stop.request()

        assert group.wait() == EXIT_CRASHED
    assert "does not end or does not answer; it is killed" in caplog.text


def test_processes_hear_that_their_supervisor_is_gone(tmp_path):
    """Whatever became of it: their end of the link tells."""
    program = (
        "import sys, django; django.setup();"
        "from django_workqueue.worker.supervisor import Supervisor, WorkerOptions;"
        "Supervisor(WorkerOptions(processes=2), command=sys.argv[1:]).run()"
    )
    command = [sys.executable, "-c", SERVE + "serve()", str(tmp_path)]
    supervisor = subprocess.Popen([sys.executable, "-c", program, *command])
    try:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2, "both to serve")
    finally:
        supervisor.kill()
        supervisor.wait()

    wait_until(lambda: [file.read_text() for file in tmp_path.iterdir()] == ["gone "] * 2, "both to hear")


def test_pauses_between_quick_deaths_grow():
    """At once for the first, as something may have killed it; never longer than half a minute."""
    slot, pauses = Slot(1), []
    for _ in range(40):
        slot.died(quickly=True)
        pauses.append(slot.start_at - module.time.monotonic())

    assert pauses[0] <= 0
    assert pauses[1] < pauses[2] < pauses[3] < pauses[-1] <= LONGEST_PAUSE
    slot.died(quickly=False)
    assert slot.start_at <= module.time.monotonic()


def test_orphans_are_collected_and_own_processes_are_not(tmp_path):
    """As process 1: what jobs leave behind ends as a child of it (rq/rq#1193)."""
    own = subprocess.Popen([sys.executable, "-c", ""])
    orphan = subprocess.Popen([sys.executable, "-c", ""])
    for process in (orphan, own):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    wait_until(lambda: module._collect_orphans({own.pid}) or own.poll() is not None, "the end of its own")
    module._collect_orphans(set())

    assert own.returncode == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(orphan.pid, os.WNOHANG)
    orphan.returncode = 0
