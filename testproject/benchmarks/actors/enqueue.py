"""
Storing jobs, through the package and without it: ``single`` and ``many``.

Both ways store the same rows on Django's own connection. The rows of the way without the package are made beforehand.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import connection
from django.utils import timezone

from django_workqueue.lifecycle.enqueue import JobRequest, build
from django_workqueue.models import Job

from ..tasks import noop

BLOCKS = 10
WARM_UP = 10
TABLE = Job._meta.db_table
#: The server stamps both times, as it does for the package.
STAMPED = {"enqueued_at", "ready_at"}
FIELDS = [each for each in Job._meta.local_concrete_fields if not each.generated and each.attname not in STAMPED]
COLUMNS = ", ".join(str(each.column) for each in FIELDS)
INSERT = f"INSERT INTO {TABLE} ({COLUMNS}) VALUES ({', '.join(['%s'] * len(FIELDS))})"
COPY = f"COPY {TABLE} ({COLUMNS}) FROM STDIN"

Row = tuple[Any, ...]


def main(arguments: Sequence[str]) -> None:
    """Print the rates in rows per second, by name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("single", "many"))
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--package-first", action="store_true")
    options = parser.parse_args(arguments)
    connection.ensure_connection()
    measure = single if options.what == "single" else many
    print(json.dumps(measure(options.jobs, package_first=options.package_first)))


def rows(numbers: Iterable[int]) -> list[Row]:
    """Return what the package would store for these arguments."""
    requests = [JobRequest(task=noop.module_path, args=(number,)) for number in numbers]
    return [row(job) for job in build(requests, timezone.now)]


def row(job: Job) -> Row:
    """Return the values of ``COLUMNS``."""
    values = (getattr(job, each.attname) for each in FIELDS)
    return tuple(str(value) if isinstance(value, str) else value for value in values)


def single(jobs: int, *, package_first: bool) -> dict[str, float]:
    """Store jobs one by one, each in its own transaction, in blocks that take turns so that both meet the same disk."""
    ways: dict[str, Callable[[range], float]] = {"single": enqueue_each, "raw": insert_each}
    order = list(ways) if package_first else list(reversed(ways))
    warm_up(ways.values())
    spent = dict.fromkeys(ways, 0.0)
    per_block = max(1, jobs // BLOCKS)
    for block in range(BLOCKS):
        for name in order:
            spent[name] += ways[name](range(block * per_block, (block + 1) * per_block))
    return {name: per_block * BLOCKS / seconds for name, seconds in spent.items()}


def many(jobs: int, *, package_first: bool) -> dict[str, float]:
    """Store all jobs at once, in one transaction."""
    ways: dict[str, Callable[[range], float]] = {"many": enqueue_many, "copy": copy_all}
    warm_up(ways.values())
    rates = {}
    for name in ways if package_first else reversed(ways):
        truncate()
        rates[name] = jobs / ways[name](range(jobs))
    truncate()
    return rates


def warm_up(ways: Iterable[Callable[[range], float]]) -> None:
    """Let each way load and remember what it needs once in a process."""
    for way in ways:
        way(range(WARM_UP))


def enqueue_each(numbers: range) -> float:
    """Enqueue jobs and return the seconds that it took."""
    begun = time.perf_counter()
    for number in numbers:
        noop.enqueue(number)
    return time.perf_counter() - begun


def insert_each(numbers: range) -> float:
    """Insert rows and return the seconds that it took."""
    made = rows(numbers)
    begun = time.perf_counter()
    for each in made:
        with connection.cursor() as cursor:
            cursor.execute(INSERT, each)
    return time.perf_counter() - begun


def enqueue_many(numbers: range) -> float:
    """Enqueue jobs in one call and return the seconds that it took."""
    calls = [(number,) for number in numbers]
    begun = time.perf_counter()
    noop.enqueue_many(calls)
    return time.perf_counter() - begun


def copy_all(numbers: range) -> float:
    """Copy rows and return the seconds that it took."""
    made = rows(numbers)
    begun = time.perf_counter()
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for each in made:
            copy.write_row(each)
    return time.perf_counter() - begun


def truncate() -> None:
    """Empty the table, and let nothing of what was written before be paid by what comes next."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {TABLE}")
        cursor.execute("CHECKPOINT")
