"""
``python -m tests.acceptance.disguises NAME[,NAME] runworkers ...``: a worker with one part of its world replaced.

``clock=SECONDS`` shifts what the process takes for the time of day, ``twin`` gives it the host name and process id of
every other twin, ``die-before-commit`` kills it when an atomic job is about to be committed, ``quick-probe`` lets its
listener check the connection after one second, and ``sick-heartbeat`` and ``sick-maintenance`` end that thread by an
error of its own. ``plug=NUMBER`` kills the process before that statement of the first settlement of a workflow's
member.
``stuck-dispatcher`` lets the dispatcher wait for ever once it has a job.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from datetime import timedelta

import django
import time_machine
from django.core.management import execute_from_command_line

# Workers import models, which need the apps.
django.setup()

from django_workqueue.lifecycle import run  # noqa: E402
from django_workqueue.store import settle  # noqa: E402
from django_workqueue.worker import dispatcher, heartbeat, listener, maintenance  # noqa: E402


def shift_clock(seconds):
    """Shift the time of day for the rest of the process; the monotonic clock stays what it is."""
    time_machine.travel(timedelta(seconds=float(seconds)), tick=True).start()


def look_like_a_twin():
    """Take a host name and a process id that others have as well, as in two containers."""
    socket.gethostname = lambda: "container"
    os.getpid = lambda: 1


def probe_quickly():
    """Shorten the listener's times."""
    listener.PROBE_SECONDS = listener.ANSWER_SECONDS = 1.0


def fall_sick(module, name, method):
    """Let a helper thread die of something that it does not expect."""

    def fail(*_args):
        raise MemoryError("no memory for a helper thread")

    setattr(getattr(module, name), method, fail)


def pull_the_plug(number):
    """Kill the process before the statement of that number in which a workflow is carried on, or after its commit."""

    def kill_at(execute, sql, params, many, context):
        kill_at.seen += 1
        if kill_at.seen == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(sql, params, many, context)

    real, kill_at.seen = settle.Settling.complete_members, 0

    def complete_members(store, *args, **kwargs):
        with store.connection.execute_wrapper(kill_at):
            answer = real(store, *args, **kwargs)
        if kill_at.seen == number - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    settle.Settling.complete_members = complete_members


def die_before_commit():
    """Kill the process when a success is recorded in the body's own transaction, just before its commit."""
    real = run.complete_within

    def complete_and_die(*args, **options):
        real(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    run.complete_within = complete_and_die


def get_stuck():
    """Let the dispatcher wait for something that never comes, as a lock in a driver would, once it has a job."""
    settle = dispatcher.Dispatcher._round

    def stick(self):
        settle(self)
        if self.claimed:
            threading.Event().wait()

    dispatcher.Dispatcher._round = stick


def put_on(disguise):
    """Put on one disguise by its name."""
    name, _, value = disguise.partition("=")
    match name:
        case "clock":
            shift_clock(value)
        case "twin":
            look_like_a_twin()
        case "die-before-commit":
            die_before_commit()
        case "quick-probe":
            probe_quickly()
        case "sick-heartbeat":
            fall_sick(heartbeat, "Heartbeat", "_beat")
        case "stuck-dispatcher":
            get_stuck()
        case "sick-maintenance":
            fall_sick(maintenance, "Maintenance", "_do")
        case "plug":
            pull_the_plug(int(value))
        case _:
            raise SystemExit(f"No disguise is called {name!r}.")


if __name__ == "__main__":
    for chosen in sys.argv[1].split(","):
        put_on(chosen)
    execute_from_command_line(["manage.py", *sys.argv[2:]])
