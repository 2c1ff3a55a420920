"""A worker's own session on PostgreSQL: plans pinned, statements prepared once, rows read by psycopg alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.datetime import TimestamptzBinaryLoader

# One round trip for all. READ COMMITTED is what the fences are written for: under a stricter level a claim that lost a
# race would raise instead of seeing the next job.
PIN_PLANS = """
SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
SET enable_mergejoin = off; SET jit = off; SET default_transaction_isolation = 'read committed'
"""


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
        with wrapper.cursor() as cursor:
            cursor.execute(PIN_PLANS)
        self._cursor = psycopg.Cursor(self._connection)
        self._cursor.adapters.register_loader("timestamptz", TimestamptzBinaryLoader)

    def is_of(self, wrapper: BaseDatabaseWrapper) -> bool:
        """Whether this is a session of ``wrapper``, the calling thread's, and of the connection that it holds now."""
        return wrapper is self._wrapper and wrapper.connection is self._connection

    def rows(self, statement: str, parameters: Mapping[str, Any] | None) -> list[Any]:
        """Run a statement and return its rows. Errors are Django's, as from its own cursor."""
        with self._wrapper.wrap_database_errors:
            return self._cursor.execute(statement, parameters, prepare=True, binary=True).fetchall()
