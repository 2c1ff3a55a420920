"""What every acceptance test says about jobs, and how it starts workers in its own way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from django.db import OperationalError, connection, transaction
from django.db.models import Model, QuerySet

from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job
from testproject.benchmarks.fleet import Fleet, Worker, wait_until

__all__ = [
    "Fleet",
    "Worker",
    "books",
    "disguised",
    "end_sessions",
    "failure_kinds",
    "freeze",
    "settings",
    "wait_for_books",
    "wait_until",
]


def settings(**keys) -> dict[str, str]:
    """Return the environment that sets these keys of WORKQUEUE, durations in seconds."""
    return {"ACCEPTANCE_WORKQUEUE": json.dumps({name.upper(): value for name, value in keys.items()})}


def disguised(*names: str) -> tuple[str, ...]:
    """Return the program that runs a worker with parts of its world replaced. See disguises.py."""
    return ("-m", "tests.acceptance.disguises", ",".join(names), "runworkers")


def books(jobs: Iterable) -> dict[str, int]:
    """Count where these jobs are now, in one look: a live job's state, an ending, or a reason to be dead."""
    ids = [str(job.id) for job in jobs]
    # One statement, one snapshot: looked at one after the other, a job that moves meanwhile may be in neither.
    rows = list(
        _places(Job, "state", ids).union(
            _places(FinishedJob, "outcome", ids), _places(DeadLetter, "reason", ids), all=True
        )
    )
    places = Counter(place for _, place in rows)
    found = {pk for pk, _ in rows}
    places["lost"] = len(ids) - len(found)
    places["doubled"] = len(rows) - len(found)
    return dict(+places)


def _places(model: type[Model], column: str, ids: list[str]) -> QuerySet:
    return model.objects.filter(pk__in=ids).values_list("pk", column)


def wait_for_books(jobs: Iterable, *, seconds: float = 30, **places: int) -> None:
    """Wait until the books of ``jobs`` are ``places``."""
    jobs = list(jobs)
    try:
        wait_until(lambda: books(jobs) == places, f"{places}", seconds=seconds)
    except AssertionError as error:
        raise AssertionError(f"{error} The books are {books(jobs)}.") from None


def failure_kinds(job) -> list[str]:
    """Return the kinds of a job's failed attempts, in order."""
    return list(Failure.objects.filter(job_id=job.id).order_by("id").values_list("kind", flat=True))


def freeze(worker: Worker) -> None:
    """
    Stop a worker by SIGSTOP while it holds no lock in the database.

    On SQLite a process that is stopped in a write keeps everybody out, which is another story than a lapsed lease.
    """

    def frozen_outside_writes() -> bool:
        worker.freeze()
        if can_write():
            return True
        worker.thaw()
        return False

    wait_until(frozen_outside_writes, f"{worker.name} to be frozen outside a write")


def can_write() -> bool:
    """Whether a write would get through at once."""
    if connection.vendor != "sqlite":
        return True
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 100")
        try:
            with transaction.atomic():
                return True
        except OperationalError:
            return False
        finally:
            cursor.execute("PRAGMA busy_timeout = 20000")


def end_sessions(text: str = "") -> int:
    """End every other session on the test's PostgreSQL database whose last statement has ``text`` in it; count them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND position(%s IN query) > 0",
            [text],
        )
        count: int = cursor.fetchone()[0]
    return count
