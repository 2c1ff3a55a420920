"""Who takes part in a drain: the package's worker, the bound, and other queues."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from django_workqueue.models import Failure, Job

from . import tasks
from .children import ACTORS, MANAGE, ask, migrate
from .database import Database
from .fleet import RUNWORKERS
from .rows import Rows, own_tables
from .watching import marker_numbers

BATCH = 200
DAY_SECONDS = 86_400


class Contestant(Protocol):
    """A queue: how its table is filled, what its processes are, and what is left for them to settle."""

    table: ClassVar[str]
    """Where jobs are until they are settled. Everybody stands before its lock until the start."""
    unsettled: ClassVar[str]
    """The condition of the rows that are not."""
    claims_with: ClassVar[str]
    """Text near the beginning of the claim, to know it by among waiting statements."""

    @property
    def program(self) -> Sequence[str]:
        """The arguments that make Python one of its worker processes."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that its processes need besides the database's."""

    def fill(self, database: Database, environment: Mapping[str, str], jobs: int, tenants: int) -> list[Any]:
        """Empty its tables, store jobs, and return the ids of the markers."""

    def failed(self, database: Database) -> int:
        """Count the jobs that did not go well."""


@dataclass(frozen=True, kw_only=True)
class Ours:
    """``manage.py runworkers`` with the options it has by default, except for what is given."""

    task: str = tasks.noop.module_path
    kept_seconds: int = 0
    finished: int = 0
    """Rows of finished jobs that are there before."""
    program: Sequence[str] = RUNWORKERS
    table: ClassVar[str] = Job._meta.db_table
    unsettled: ClassVar[str] = "TRUE"
    claims_with: ClassVar[str] = "picked AS MATERIALIZED"

    @property
    def environment(self) -> Mapping[str, str]:
        """The retention, as a setting."""
        return {"WORKQUEUE": json.dumps({"RETENTION": self.kept_seconds})}

    def fill(self, database: Database, _environment: Mapping[str, str], jobs: int, tenants: int) -> list[Any]:
        """See Contestant.fill."""
        database.truncate(*own_tables())
        if self.finished:
            Rows(count=self.finished, task=self.task, first=jobs + 1).insert_finished(database)
        rows = Rows(count=jobs, task=self.task, tenants=tenants)
        rows.insert_ready(database)
        database.tidy(*own_tables())
        return [rows.id(number) for number in marker_numbers(jobs)]

    def failed(self, database: Database) -> int:
        """See Contestant.failed."""
        return int(database.value(f"SELECT count(*) FROM {Failure._meta.db_table}"))


def bound(*, kept_seconds: int = 0) -> Ours:
    """Return a bare loop over the package's own statements: what the database allows on one connection."""
    actor = (*ACTORS, "bound", "--batch", str(BATCH), "--kept-seconds", str(kept_seconds))
    return Ours(kept_seconds=kept_seconds, program=actor)


@dataclass(frozen=True, kw_only=True)
class PgQueuer:
    """pgqueuer on asyncpg and uvloop, durable, with its vacuum settings."""

    batch: int
    """Jobs that are fetched at once."""
    environment: Mapping[str, str] = field(default_factory=dict)
    table: ClassVar[str] = "pgqueuer"
    unsettled: ClassVar[str] = "TRUE"
    claims_with: ClassVar[str] = "available"

    @property
    def program(self) -> Sequence[str]:
        """The actor."""
        return (*ACTORS, "pgqueuer", "work", "--batch", str(self.batch))

    def fill(self, database: Database, environment: Mapping[str, str], jobs: int, _tenants: int) -> list[Any]:
        """See Contestant.fill."""
        ask(environment, "pgqueuer", "install")
        database.truncate("pgqueuer", "pgqueuer_log", "pgqueuer_statistics")
        ask(environment, "pgqueuer", "enqueue", "--jobs", str(jobs))
        database.tidy("pgqueuer", "pgqueuer_log")
        return list(marker_numbers(jobs))

    def failed(self, database: Database) -> int:
        """See Contestant.failed."""
        return int(database.value("SELECT count(*) FROM pgqueuer_log WHERE status IN ('exception', 'failed')"))


@dataclass(frozen=True, kw_only=True)
class DjangoTasksDb:
    """django-tasks-db, whose worker runs one job after the other: silent, and without pauses."""

    program: Sequence[str] = (*MANAGE, "db_worker", "-v", "0", "--interval", "0", "--no-startup-delay")
    environment: Mapping[str, str] = field(
        default_factory=lambda: {"DJANGO_SETTINGS_MODULE": "testproject.benchmarks.peers.settings"}
    )
    table: ClassVar[str] = "django_tasks_database_dbtaskresult"
    unsettled: ClassVar[str] = "status NOT IN ('SUCCESSFUL', 'FAILED')"
    claims_with: ClassVar[str] = "django_tasks_database_dbtaskresult"

    def fill(self, database: Database, environment: Mapping[str, str], jobs: int, _tenants: int) -> list[Any]:
        """See Contestant.fill."""
        migrate(environment)
        database.truncate(self.table)
        ids: list[Any] = ask(environment, "django_tasks_db", "--jobs", str(jobs))
        database.tidy(self.table)
        return ids

    def failed(self, database: Database) -> int:
        """See Contestant.failed."""
        return int(database.value(f"SELECT count(*) FROM {self.table} WHERE status = 'FAILED'"))
