"""``manage.py demo`` as a newcomer runs it: in a process of its own, on a database of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from testproject.settings import BASE_DIR

UP = re.compile(r"is up, process (\d+)\.")


@pytest.fixture
def environment(request, tmp_path):
    """Return the environment of a newcomer whose database and outbox are empty."""
    ours = ("DJANGO_", "WORKQUEUE", "PYTEST_")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "DATABASE_URL": database_url(request, tmp_path),
        "OUTBOX": str(tmp_path / "outbox"),
    }


def database_url(request, tmp_path):
    """Return the address of an empty database of the kind under test."""
    if settings.TEST_DB == "postgresql":
        return request.getfixturevalue("own_postgres").url
    return f"sqlite:///{tmp_path}/demo.sqlite3"


@pytest.fixture
def demo(environment):
    """Yield a function that starts the demonstration; it is ended with the test."""
    with ExitStack() as stack:

        def start(*options):
            command = [sys.executable, BASE_DIR / "manage.py", "demo", *options]
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
                preexec_fn=hear_of_interrupts,  # noqa: PLW1509 - no thread of ours holds a lock meanwhile
            )
            stack.enter_context(process)
            stack.callback(process.terminate)
            return process

        yield start


def hear_of_interrupts():
    """Undo what a shell does to all that it runs in its background, tests among them: SIGINT is ignored there."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def read_until(process, pattern, *, times=1):
    """Return what ``pattern`` finds in the output, once it has found it in ``times`` lines."""
    found = []
    while len(found) < times:
        line = process.stdout.readline()
        assert line, f"The demonstration ended before it printed {pattern.pattern!r} {times} times."
        found.extend(pattern.findall(line))
    return found


def is_running(pid):
    """Tell whether a process of that id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.acceptance
def test_books_balance_twice_on_one_database(demo):
    """With a worker killed in mid-work nothing is lost, and a second run is not confused by the first."""
    for _ in range(2):
        process = demo("--orders", "120", "--no-color")
        output, _ = process.communicate()

        assert process.returncode == 0, output
        assert re.search(r"^  +lost +0 +must be 0$", output, re.MULTILINE), output
        assert re.search(r"^  attempts reaped +[1-9]", output, re.MULTILINE), output
        assert "The books balance" in output


@pytest.mark.acceptance
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_leaves_no_worker(demo, number):
    """However the demonstration is ended, its workers end with it, and the exit code says how."""
    process = demo()
    workers = [int(pid) for pid in read_until(process, UP, times=2)]

    process.send_signal(number)
    process.communicate()

    assert process.returncode == 128 + number
    assert not any(is_running(pid) for pid in workers)


@pytest.mark.acceptance
def test_demo_fails_when_its_last_worker_dies(demo):
    """A demonstration without workers cannot balance: it ends at once, non-zero, and says which one ended."""
    process = demo()
    _, survivor = (int(pid) for pid in read_until(process, UP, times=2))
    read_until(process, re.compile("Killed demo-"))

    os.kill(survivor, signal.SIGKILL)
    output, _ = process.communicate()

    assert process.returncode == 1
    assert re.search(r"demo-\w+-2 ended by itself with exit code -9", output), output


def test_too_few_orders_are_refused():
    """Below a handful of orders there is nothing to kill a worker in the middle of."""
    with pytest.raises(CommandError, match="--orders is 3"):
        call_command("demo", "--orders", "3")
