"""A worker's own session on PostgreSQL: plans pinned, and rows read by psycopg alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus
from psycopg.types.datetime import TimestamptzBinaryLoader

from . import arrays

# READ COMMITTED is what the fences are written for: under a stricter level a claim that lost a race would raise instead
# of seeing the next job.
PLANS = {
    "enable_seqscan": "off",
    "enable_sort": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
PINNED = {
    **PLANS,
    # A row or table that somebody holds must not hold up the worker's other work, nor its end.
    "lock_timeout": "'1s'",
    "statement_timeout": "'30s'",
}
PIN_SESSION = "; ".join(
    f"SET {name} = {value}" for name, value in {**PINNED, "default_transaction_isolation": "'read committed'"}.items()
)
PIN_PLANS = "; ".join(f"SET LOCAL {name} = {value}" for name, value in PLANS.items())
PIN_TRANSACTION = "; ".join(f"SET LOCAL {name} = {value}" for name, value in PINNED.items())


def read_committed(connection: psycopg.Connection[Any]) -> None:
    """Let a worker's transactions be as its statements need them, whatever OPTIONS["isolation_level"] says."""
    # Inside a transaction, as in a test case, it is too late for that one.
    if connection.isolation_level is not None and connection.info.transaction_status == TransactionStatus.IDLE:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED


class Session:
    """
    Runs the hot statements of one connection.

    Django's cursor binds on the client, so that the server parses and plans every statement anew, and reads times and
    texts through its own loaders. Here a statement is prepared at its first run, and parameters and rows travel in
    binary.
    """

    def __init__(self, wrapper: BaseDatabaseWrapper) -> None:
        self._wrapper = wrapper
        self._connection: psycopg.Connection[Any] = wrapper.connection
        read_committed(self._connection)
        with wrapper.cursor() as cursor:
            cursor.execute(PIN_SESSION)
        # Django turns preparing off for the connection; only this cursor asks for it, its own bind on the client.
        self._connection.prepare_threshold = 5
        self._cursor = psycopg.Cursor(self._connection)
        self._cursor.adapters.register_loader("timestamptz", TimestamptzBinaryLoader)
        arrays.register(self._cursor)

    def is_of(self, wrapper: BaseDatabaseWrapper) -> bool:
        """Whether this is a session of ``wrapper``, the calling thread's, and of the connection that it holds now."""
        return wrapper is self._wrapper and wrapper.connection is self._connection

    def rows(self, statement: str, parameters: Mapping[str, Any] | None) -> list[Any]:
        """Run a statement and return its rows. Errors are Django's, as from its own cursor."""
        with self._wrapper.wrap_database_errors:
            return self._cursor.execute(statement, parameters, prepare=True, binary=True).fetchall()


class PooledSession(Session):
    """
    The same behind a transaction pooler, where the next statement may meet another server process.

    Nothing may outlive a transaction, no setting and no prepared statement: the plans are pinned anew before each
    statement, in the same message and so in the same transaction.
    """

    def __init__(self, wrapper: BaseDatabaseWrapper) -> None:
        self._wrapper = wrapper
        self._connection = wrapper.connection
        read_committed(self._connection)

    def rows(self, statement: str, parameters: Mapping[str, Any] | None) -> list[Any]:
        """Run a statement and return its rows. Errors are Django's, as from its own cursor."""
        with self._wrapper.wrap_database_errors, psycopg.ClientCursor(self._connection) as cursor:
            cursor.execute(f"{PIN_TRANSACTION}; {statement}", parameters)
            while cursor.nextset():
                pass
            return cursor.fetchall()
