"""
pgqueuer as its manual would have it for throughput.

One asyncpg connection for each process, uvloop, the recommended vacuum settings, large batches; logged tables, since
ours are. Its jobs are coroutines, which is all that it runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

ENTRYPOINT = "noop"
#: Jobs of one statement when many are enqueued.
ENQUEUE_BATCH = 10_000


def main(arguments: Sequence[str]) -> None:
    """Install, enqueue jobs and print the seconds that it took, or work until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("install", "enqueue", "work"))
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--batch", type=int, default=10)
    options = parser.parse_args(arguments)
    acts: dict[str, Callable[[asyncpg.Connection], Awaitable[Any]]] = {
        "install": install,
        "enqueue": lambda connection: enqueue(connection, options.jobs),
        "work": lambda connection: work(connection, options.batch),
    }
    print(json.dumps(uvloop.run(connected(acts[options.what]))))


async def connected(act: Callable[[asyncpg.Connection], Awaitable[Any]]) -> Any:
    """Call ``act`` with a connection to the database that the environment names."""
    connection = await asyncpg.connect()
    try:
        return await act(connection)
    finally:
        await connection.close()


async def install(connection: asyncpg.Connection) -> None:
    """Create the tables, unless they are there."""
    queries = Queries(AsyncpgDriver(connection))
    if not await queries.has_table("pgqueuer"):
        await queries.install()
        await queries.optimize_autovacuum()


async def enqueue(connection: asyncpg.Connection, jobs: int) -> float:
    """Enqueue jobs and return the seconds that it took."""
    queries = Queries(AsyncpgDriver(connection))
    payloads = [b"[%d]" % number for number in range(jobs)]
    begun = time.perf_counter()
    for first in range(0, jobs, ENQUEUE_BATCH):
        some = payloads[first : first + ENQUEUE_BATCH]
        await queries.enqueue([ENTRYPOINT] * len(some), some, [0] * len(some))
    return time.perf_counter() - begun


async def noop(job: Job) -> None:
    """Do nothing."""


async def work(connection: asyncpg.Connection, batch: int) -> None:
    """Work off what is there and what comes."""
    queue = PgQueuer(AsyncpgDriver(connection))

    queue.entrypoint(ENTRYPOINT)(noop)
    await queue.run(batch_size=batch)
