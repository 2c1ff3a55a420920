"""
Looking at every page: how long each takes, and how many statements.

Pages are asked for in this process, through Django's test client: middleware, views, templates and the database, and
no network. Each is asked for once before it counts, and of the times after that the shortest counts: what else the
machine does adds to a time and takes nothing from it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from ..screens import Request, pages


def main(arguments: Sequence[str]) -> None:
    """Print milliseconds, statements and pages of the database that each page of the admin takes, by name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    found = {}
    for name, requests in pages(signed_in()):
        seen = [measured(request, options.repeat) for request in requests()]
        found[name] = tuple(map(max, zip(*seen, strict=True)))
    print(json.dumps(found))


def signed_in() -> Client:
    """Return the browser of somebody who may do everything."""
    people = get_user_model()._default_manager
    person = people.filter(is_superuser=True).first() or people.create_superuser("olga", "olga@shop.example", "-")
    client = Client(SERVER_NAME="localhost")
    client.force_login(person)
    return client


def measured(request: Request, repeat: int) -> tuple[float, int, int]:
    """Make a request so often; return the shortest in milliseconds, and the statements and pages of one."""
    statements = Statements()
    with connection.execute_wrapper(statements):
        request()
    before = pages_looked_at()
    times = [_timed(request) for _ in range(repeat)]
    return min(times), statements.count, (pages_looked_at() - before) // repeat


def pages_looked_at() -> int:
    """Return how many pages, eight kilobytes each, the server has looked at for this database."""
    with connection.cursor() as cursor:
        # What a session has counted is told to others now and then, or at the end of a transaction that asks for it.
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()")
        [(pages,)] = cursor.fetchall()
    return int(pages)


class Statements:
    """Counts what goes to the database, savepoints and settings included."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, run: Callable[..., Any], *given: Any) -> Any:
        """Count one, and carry it out."""
        self.count += 1
        return run(*given)


def _timed(request: Request) -> float:
    begun = time.perf_counter()
    request()
    return (time.perf_counter() - begun) * 1000
