"""The bound on SQLite: what the package's store asks there, in a bare loop of the standard library's driver."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django_workqueue.models import Failure, Job, Lease
from django_workqueue.store.claim import CLAIMED_COLUMNS
from testproject.settings import SQLITE_OPTIONS

from ..rows import QUEUE

JOB, LEASE, FAILURE = (model._meta.db_table for model in (Job, Lease, Failure))
COLUMNS = ", ".join(CLAIMED_COLUMNS)
NOW = "strftime('%Y-%m-%d %H:%M:%f000', 'now')"
PICK = f"""
    SELECT {COLUMNS} FROM {JOB}
    WHERE state = 'ready' AND queue = ? AND tenant = '' ORDER BY rank, ready_at, id LIMIT ?
"""
OPEN = f"""
    INSERT INTO {LEASE} (worker, queue, acquired_at, renewed_at, expires_at, deadline_at)
    VALUES ('raw', ?, {NOW}, {NOW}, strftime('%Y-%m-%d %H:%M:%f000', 'now', '+30 seconds'),
            strftime('%Y-%m-%d %H:%M:%f000', 'now', '+1 hour'))
"""
TAKE = f"""
    UPDATE {JOB} SET state = 'leased', lease_id = ?, attempts = attempts + 1,
                     dedupe_key = CASE WHEN dedupe_until_start THEN NULL ELSE dedupe_key END
    WHERE state = 'ready' AND id IN
"""
HOLDS = f"SELECT 1 FROM {LEASE} WHERE id = ? AND expires_at > {NOW}"
HELD = f"SELECT {COLUMNS} FROM {JOB} WHERE lease_id = ? AND id IN"
FORGET = f"DELETE FROM {FAILURE} WHERE job_id IN"
REMOVE = f"DELETE FROM {JOB} WHERE id IN"
CLOSE = f"DELETE FROM {LEASE} WHERE id = ? AND expires_at > {NOW}"


def main(arguments: Sequence[str]) -> None:
    """Claim and complete until nothing is left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    parser.add_argument("--batch", type=int, required=True)
    options = parser.parse_args(arguments)
    connection = sqlite3.connect(options.file, timeout=float(str(SQLITE_OPTIONS["timeout"])), isolation_level=None)
    connection.execute(str(SQLITE_OPTIONS["init_command"]))
    while taken := claim(connection, options.batch):
        complete(connection, *taken)


def claim(connection: sqlite3.Connection, limit: int) -> tuple[int, list[Any]] | None:
    """Claim up to ``limit`` jobs and return their lease and ids."""
    with transaction(connection):
        ids = [row[0] for row in connection.execute(PICK, (QUEUE, limit)).fetchall()]
        if not ids:
            return None
        lease = connection.execute(OPEN, (QUEUE,)).lastrowid or 0
        connection.execute(TAKE + places(ids), (lease, *ids))
    return lease, ids


def complete(connection: sqlite3.Connection, lease: int, ids: list[Any]) -> None:
    """Complete what one claim took. Raises RuntimeError for a lease that does not hold."""
    with transaction(connection):
        holds = connection.execute(HOLDS, (lease,)).fetchone()
        held = connection.execute(HELD + places(ids), (lease, *ids)).fetchall()
        if not holds or len(held) != len(ids):
            raise RuntimeError("The loop lost a lease.")
        connection.execute(FORGET + places(ids), ids)
        connection.execute(REMOVE + places(ids), ids)
        connection.execute(CLOSE, (lease,))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block in one transaction that begins as a writer."""
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("COMMIT")


def places(ids: Sequence[Any]) -> str:
    """Return the placeholders of a list."""
    return f" ({', '.join('?' * len(ids))})"
