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
    """Print milliseconds and statements of each page, by name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    found = {}
    for name, requests in pages(signed_in()):
        seen = [measured(request, options.repeat) for request in requests()]
        found[name] = (max(spent for spent, _ in seen), max(count for _, count in seen))
    print(json.dumps(found))


def signed_in() -> Client:
    """Return the browser of somebody who may do everything."""
    people = get_user_model()._default_manager
    person = people.filter(is_superuser=True).first() or people.create_superuser("olga", "olga@shop.example", "-")
    client = Client(SERVER_NAME="localhost")
    client.force_login(person)
    return client


def measured(request: Request, repeat: int) -> tuple[float, int]:
    """Make a request so often, and return the shortest in milliseconds and the statements of one."""
    statements = Statements()
    with connection.execute_wrapper(statements):
        request()
    return min(_timed(request) for _ in range(repeat)), statements.count


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
