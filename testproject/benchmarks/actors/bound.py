"""The bound: claim and complete in a bare loop until nothing is left."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .raw import RawQueue


def main(arguments: Sequence[str]) -> None:
    """Drain the queue."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--kept-seconds", type=float, default=0.0)
    options = parser.parse_args(arguments)
    drain(RawQueue(kept_seconds=options.kept_seconds), options.batch)


def drain(queue: RawQueue, batch: int) -> None:
    """Claim and complete until a claim finds nothing. Raises RuntimeError for a lease that did not hold."""
    while rows := queue.claim(batch):
        if queue.complete(rows) != len(rows):
            raise RuntimeError("A completion was refused: the loop lost a lease.")
