"""What PostgreSQL says of itself that decides how fast the queue is: old snapshots, dead rows, and bounded looking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from django.db import transaction

from ..models import Failure, FinishedJob, Job, Lease, Step
from .session import PIN_PLANS
from .survey import Bloat, Snapshot, Surveying

HOT = [model._meta.db_table for model in (Job, Lease, FinishedJob, Failure, Step)]

# Whoever holds a snapshot keeps every row that died since: sessions, replicas by their slots, prepared transactions.
SNAPSHOTS = """
SELECT 'session', pid::text, coalesce(usename, ''), coalesce(application_name, ''), coalesce(state, ''),
       extract(epoch FROM statement_timestamp() - xact_start)::float8, age(backend_xmin)
FROM pg_stat_activity
WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
UNION ALL
SELECT 'slot', slot_name::text, '', coalesce(plugin::text, ''), CASE WHEN active THEN 'active' ELSE 'inactive' END,
       NULL, age(xmin)
FROM pg_replication_slots WHERE xmin IS NOT NULL
UNION ALL
SELECT 'prepared', gid, owner::text, '', 'prepared', extract(epoch FROM statement_timestamp() - prepared)::float8,
       age(transaction)
FROM pg_prepared_xacts WHERE database = current_database()
ORDER BY 7 DESC LIMIT %(limit)s
"""

BLOAT = """
SELECT relname, n_live_tup, n_dead_tup,
       extract(epoch FROM statement_timestamp() - greatest(last_vacuum, last_autovacuum))::float8
FROM pg_stat_user_tables WHERE schemaname = ANY(current_schemas(false)) AND relname = ANY(%(tables)s)
ORDER BY n_dead_tup DESC
"""


_LOOKING: ContextVar[str | None] = ContextVar("django_workqueue_looking", default=None)
"""The database that is looked at already: who looks while looking is bounded as it is, and pays nothing more."""


class PostgresSurveying(Surveying):
    """The looks that only PostgreSQL offers."""

    @contextmanager
    def looking(self, most: timedelta) -> Iterator[None]:
        """See Surveying.looking. In a read-only transaction the server itself refuses a lock on a row."""
        if _LOOKING.get() == self.alias:
            yield
            return
        token = _LOOKING.set(self.alias)
        try:
            with self._reading(most):
                yield
        finally:
            _LOOKING.reset(token)

    @contextmanager
    def _reading(self, most: timedelta) -> Iterator[None]:
        with transaction.atomic(using=self.alias):
            milliseconds = int(most.total_seconds() * 1000)
            with self.connection.cursor() as cursor:
                cursor.execute(
                    f"{PIN_PLANS}; SET LOCAL transaction_read_only = on; SET LOCAL statement_timeout = {milliseconds}"
                )
            yield
            # The settings end with the transaction, or, within one of the caller, with the savepoint undone here.
            transaction.set_rollback(True, using=self.alias)

    def snapshots(self, limit: int = 3) -> list[Snapshot]:
        """See Surveying.snapshots."""
        return [
            Snapshot(kind, name, user, program, state, None if age is None else timedelta(seconds=age), transactions)
            for kind, name, user, program, state, age, transactions in self._read(SNAPSHOTS, {"limit": limit})
        ]

    def bloat(self) -> list[Bloat]:
        """See Surveying.bloat."""
        return [
            Bloat(table, live, dead, None if age is None else timedelta(seconds=age))
            for table, live, dead, age in self._read(BLOAT, {"tables": HOT})
        ]

    def _read(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            rows: list[Any] = cursor.fetchall()
        return rows
