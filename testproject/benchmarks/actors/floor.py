"""
The least time between a commit and the first line of a job: insert and NOTIFY here, wake and claim there.

``send`` and ``claim`` are two processes with nothing but psycopg: no tasks, no threads, no settings.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence

import psycopg

from ..tasks import note
from .enqueue import INSERT, rows
from .pacing import at_intervals
from .raw import ARGS, RawQueue

CHANNEL = "dwq_benchmark_floor"
LISTENS = "The floor listens."


def main(arguments: Sequence[str]) -> None:
    """Send jobs at equal distances and print when each was committed, or claim them and note when."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("send", "claim"))
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--every", type=float, default=0.0)
    options = parser.parse_args(arguments)
    if options.what == "claim":
        claim(options.jobs)
    else:
        print(json.dumps(send(options.jobs, options.every)))


def send(jobs: int, seconds: float) -> dict[int, int]:
    """Insert jobs, each with a notification after its commit, and return the moments of the commits."""
    made = rows(range(jobs))
    with psycopg.connect(autocommit=True) as connection:

        def act(number: int) -> int:
            connection.execute(INSERT, made[number], prepare=True)
            moment = time.monotonic_ns()
            connection.execute("SELECT pg_notify(%s, '')", [CHANNEL], prepare=True)
            return moment

        return at_intervals(jobs, seconds, act)


def claim(jobs: int) -> None:
    """Wake at each notification, claim, note the moment and complete, until all jobs have come."""
    queue = RawQueue()
    done = 0
    for _ in wakes():
        while taken := queue.claim(1):
            note(json.loads(taken[0][ARGS])[0], time.monotonic_ns())
            queue.complete(taken)
            done += 1
        if done >= jobs:
            return


def wakes() -> Iterator[None]:
    """Yield at each notification."""
    with psycopg.connect(autocommit=True) as connection:
        connection.execute(f"LISTEN {CHANNEL}")
        print(LISTENS, flush=True)
        for _ in connection.notifies():
            yield
