"""Store a backlog of django-tasks-db and print the ids of the markers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence

from django_tasks_db.models import DBTaskResult, get_date_max

from ..peers.tasks import noop
from ..watching import marker_numbers


def main(arguments: Sequence[str]) -> None:
    """Store jobs as its backend does, many at once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, required=True)
    options = parser.parse_args(arguments)
    stored = DBTaskResult.objects.bulk_create(results(options.jobs), batch_size=1000)
    print(json.dumps([str(stored[number - 1].pk) for number in marker_numbers(options.jobs)]))


def results(jobs: int) -> Iterator[DBTaskResult]:
    """Yield the rows of ``jobs`` jobs."""
    for number in range(jobs):
        yield DBTaskResult(
            args_kwargs={"args": [number], "kwargs": {}},
            task_path=noop.module_path,
            queue_name=noop.queue_name,
            backend_name="default",
            run_after=get_date_max(),
        )
