"""Store a backlog on SQLite, through the ORM."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from django_workqueue.models import Job

from ..rows import ARRIVALS_PER_MILLISECOND, QUEUE, Rows
from ..tasks import noop


def main(arguments: Sequence[str]) -> None:
    """Store jobs whose ids follow from ``--begun-ms``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--begun-ms", type=int, required=True)
    options = parser.parse_args(arguments)
    rows = Rows(count=options.jobs, task=noop.module_path, begun_ms=options.begun_ms)
    Job.objects.bulk_create(jobs_of(rows), batch_size=1000)


def jobs_of(rows: Rows) -> Iterator[Job]:
    """Yield the jobs that ``rows`` stands for."""
    for number in range(1, rows.count + 1):
        moment = datetime.fromtimestamp((rows.begun_ms + number / ARRIVALS_PER_MILLISECOND) / 1000, UTC)
        yield Job(
            id=rows.id(number),
            queue=QUEUE,
            task=rows.task,
            args=f"[{number}]",
            enqueued_at=moment,
            ready_at=moment,
        )
