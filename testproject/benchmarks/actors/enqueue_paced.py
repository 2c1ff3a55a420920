"""Enqueue one job after the other, and print when each was committed."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

from django.db import connection, transaction

from ..tasks import stamp
from .pacing import at_intervals


def main(arguments: Sequence[str]) -> None:
    """Print the moments of the commits, by number."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--every", type=float, required=True)
    options = parser.parse_args(arguments)
    connection.ensure_connection()
    print(json.dumps(at_intervals(options.jobs, options.every, enqueue)))


def enqueue(number: int) -> int:
    """Enqueue a job and return the moment of its commit, before workers are notified."""
    moments: list[int] = []
    with transaction.atomic():
        transaction.on_commit(lambda: moments.append(time.monotonic_ns()))
        stamp.enqueue(number)
    return moments[0]
