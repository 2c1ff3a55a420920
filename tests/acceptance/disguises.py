"""
``python -m tests.acceptance.disguises NAME[,NAME] runworkers ...``: a worker with one part of its world replaced.

``clock=SECONDS`` shifts what the process takes for the time of day, ``twin`` gives it the host name and process id of
every other twin, ``quick-probe`` lets its listener check the connection after one second, and ``sick-heartbeat`` and
``sick-maintenance`` end that thread by an error of its own.
"""

from __future__ import annotations

import os
import socket
import sys
from datetime import timedelta

import django
import time_machine
from django.core.management import execute_from_command_line

# Workers import models, which need the apps.
django.setup()

from django_workqueue.worker import heartbeat, listener, maintenance  # noqa: E402


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


def put_on(disguise):
    """Put on one disguise by its name."""
    name, _, value = disguise.partition("=")
    match name:
        case "clock":
            shift_clock(value)
        case "twin":
            look_like_a_twin()
        case "quick-probe":
            probe_quickly()
        case "sick-heartbeat":
            fall_sick(heartbeat, "Heartbeat", "_beat")
        case "sick-maintenance":
            fall_sick(maintenance, "Maintenance", "_do")
        case _:
            raise SystemExit(f"No disguise is called {name!r}.")


if __name__ == "__main__":
    for chosen in sys.argv[1].split(","):
        put_on(chosen)
    execute_from_command_line(["manage.py", *sys.argv[2:]])
