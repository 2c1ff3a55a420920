"""The suite's own surroundings: threads and processes must meet on the test's database, and on no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from testproject.settings import SQLITE_OPTIONS, database

ROOT = Path(__file__).resolve().parent.parent

COUNT_GROUPS = """
import django
django.setup()
from django.contrib.auth.models import Group
print(*Group.objects.values_list("name", flat=True))
"""


def test_process_sees_what_the_test_committed(process_environment):
    """A worker process that a test starts works on the test's rows, also under pytest-xdist."""
    Group.objects.create(name="committed")

    done = subprocess.run(
        [sys.executable, "-c", COUNT_GROUPS],
        cwd=ROOT,
        env=process_environment,
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout.strip() == "committed"


@pytest.mark.django_db(transaction=True)
def test_thread_sees_what_the_test_committed():
    """A worker thread has a connection of its own: a database in memory would be another one."""
    Group.objects.create(name="committed")
    seen = []

    def look() -> None:
        seen.extend(Group.objects.values_list("name", flat=True))
        connection.close()

    thread = Thread(target=look)
    thread.start()
    thread.join()

    assert seen == ["committed"]


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
def test_sqlite_waits_instead_of_failing():
    """The documented options are in force: WAL, and a lock taken at the start of each transaction."""
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert cursor.execute("PRAGMA busy_timeout").fetchone() == (20_000,)
    assert connection.transaction_mode == "IMMEDIATE"


def test_project_gives_sqlite_the_options_of_a_queue():
    """Whoever copies the test project's settings gets a SQLite file on which workers can share a queue."""
    assert database("sqlite:////data/queue.sqlite3")["OPTIONS"] == SQLITE_OPTIONS


def test_project_leaves_postgresql_as_its_address_says():
    """Options in DATABASE_URL reach the driver, and none of SQLite's join them."""
    assert database("postgres://me@db.example.com/shop?connect_timeout=3")["OPTIONS"] == {"connect_timeout": 3}
