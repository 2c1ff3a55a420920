"""
``manage.py`` with a count: each statement sent to the database leaves its moment in ``BENCHMARK_STATEMENTS``.

Counted are the statements of Django's cursors and of bare psycopg connections, and two for each transaction that is
ended by its own statement: that one, and the BEGIN before it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import psycopg
from django.core.management import execute_from_command_line

_FILE = os.open(os.environ["BENCHMARK_STATEMENTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def main(arguments: Sequence[str]) -> None:
    """Run a management command, counting."""
    for owner, name, count in (
        (psycopg.Cursor, "execute", 1),
        (psycopg.Cursor, "executemany", 1),
        (psycopg.Connection, "commit", 2),
        (psycopg.Connection, "rollback", 2),
    ):
        setattr(owner, name, counting(getattr(owner, name), count))
    execute_from_command_line(["manage.py", *arguments])


def counting(method: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return ``method`` with a note of ``count`` statements before each call."""

    @wraps(method)
    def counted(*args: Any, **kwargs: Any) -> Any:
        os.write(_FILE, b"%d\n" % time.monotonic_ns() * count)
        return method(*args, **kwargs)

    return counted
