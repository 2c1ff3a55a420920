"""Very many rows in one statement, on either database."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from django_workqueue.models import FinishedJob, Job

NUMBERS = {
    "postgresql": "generate_series({first}, {last}) AS number(n)",
    "sqlite": "(WITH RECURSIVE number(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM number WHERE n < {last})"
    " SELECT n FROM number)",
}
IDS = {"postgresql": "lpad(to_hex(n), 32, '0')::uuid", "sqlite": "printf('%%032x', n)"}

COMMON = {
    "queue": "%(queue)s",
    "tenant": "%(tenant)s",
    "task": "'tests.samples.add'",
    "args": "'[1,2]'",
    "kwargs": "'{}'",
    "priority": "%(priority)s",
    "max_attempts": "5",
    "interruptions": "0",
    "dedupe_until_start": "false",
    "enqueued_at": "%(at)s",
    "metadata": "'{}'",
    "last_error": "''",
}
READY = {"attempts": "0", "state": "'ready'", "ready_at": "%(at)s", "lapses": "0"}
FINISHED = {
    "attempts": "1",
    "outcome": "'succeeded'",
    "result": "'null'",
    "worker": "'worker-1'",
    "finished_at": "%(at)s",
    "expires_at": "%(expires)s",
}


def fill_ready(count: int, *, tenant: str = "", priority: int = 0, first: int = 1, scattered: bool = False) -> None:
    """Make ``count`` ready jobs with the ids from ``first`` on; ``scattered``: not in the order of their ids."""
    columns = {**COMMON, **READY, **(_scattered(count) if scattered else {})}
    _fill(Job, columns, count, first, tenant=tenant, priority=priority, at=timezone.now() - timedelta(hours=1))


def fill_finished(count: int, *, over: bool = False, first: int = 1) -> None:
    """Make ``count`` finished jobs; ``over`` makes them such whose retention has passed."""
    now = timezone.now()
    expires = now - timedelta(minutes=1) if over else now + timedelta(days=1)
    at = now - timedelta(days=2)
    _fill(FinishedJob, {**COMMON, **FINISHED}, count, first, tenant="", priority=0, at=at, expires=expires)


def _scattered(count: int) -> dict[str, str]:
    """Return stamps a millisecond apart in another order than that of the ids. 7919 is prime: none comes twice."""
    return {"ready_at": f"%(at)s + n * 7919 %% {count} * interval '1 millisecond'"}


def _fill(model, columns, count, first, **values) -> None:
    numbers = NUMBERS[connection.vendor].format(first=first, last=first + count - 1)
    statement = (
        f"INSERT INTO {model._meta.db_table} (id, {', '.join(columns)})"
        f" SELECT {IDS[connection.vendor]}, {', '.join(columns.values())} FROM {numbers}"
    )
    values = {"queue": "default", **values}
    if connection.vendor == "sqlite":
        values = {
            name: connection.ops.adapt_datetimefield_value(value) if name in {"at", "expires"} else value
            for name, value in values.items()
        }
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
