"""The package's own statements on a bare psycopg connection: no Django, no threads, no tasks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.types.datetime import TimestamptzBinaryLoader

from django_workqueue.conf import QueuePolicy
from django_workqueue.domain.rotation import FIRST_ID, FIRST_RANK, LAST_RANK, SLACK
from django_workqueue.store import arrays
from django_workqueue.store.arrays import Ids
from django_workqueue.store.claim import CLAIMED_COLUMNS
from django_workqueue.store.postgresql import CLAIM, COMPLETE, COMPLETE_AND_KEEP
from django_workqueue.store.session import PIN_SESSION

from ..rows import QUEUE

Row = tuple[Any, ...]
ID, ARGS, READY_AT, LEASE = (CLAIMED_COLUMNS.index(name) for name in ("id", "args", "ready_at", "lease_id"))
_BEGINNING = datetime(1, 1, 2, tzinfo=UTC)


class RawQueue:
    """Claims from the nameless tenant, each time behind the last claim's end as a worker does, and completes."""

    def __init__(self, *, kept_seconds: float = 0.0) -> None:
        connection = psycopg.connect(autocommit=True)
        connection.execute(PIN_SESSION)
        self._cursor = psycopg.Cursor(connection)
        self._cursor.adapters.register_loader("timestamptz", TimestamptzBinaryLoader)
        arrays.register(self._cursor)
        self._complete = COMPLETE_AND_KEEP if kept_seconds else COMPLETE
        self._kept_seconds = kept_seconds
        policy = QueuePolicy()
        self._order: dict[str, Any] = {
            "worker": "raw",
            "queue": QUEUE,
            "tenants": [""],
            "firsts": [1],
            "lasts": [1],
            "ranks": [FIRST_RANK],
            "afters": [_BEGINNING],
            "after_ids": [FIRST_ID],
            "ends": [LAST_RANK],
            "lease": policy.lease,
            "max_lease": policy.max_lease,
        }

    def claim(self, limit: int) -> list[Row]:
        """Claim up to ``limit`` jobs."""
        rows = self._rows(CLAIM, {**self._order, "limit": limit, "quantum": limit})
        if rows:
            horizon = rows[0][-1] - SLACK
            mark = max((row[READY_AT], row[ID]) for row in rows)
            after, after_id = mark if mark[0] <= horizon else (horizon, FIRST_ID)
            self._order |= {"afters": [after], "after_ids": [after_id]}
        return rows

    def complete(self, rows: list[Row]) -> int:
        """Complete what one claim took, and count what was completed."""
        count = len(rows)
        parameters = {
            "ids": Ids([row[ID] for row in rows]),
            "results": ["null"] * count,
            "runs": [0.0] * count,
            "kept": [self._kept_seconds] * count,
            "lease": rows[0][LEASE],
            "worker": "raw",
            "last": True,
        }
        completed: int = self._rows(self._complete, parameters)[0][0]
        return completed

    def _rows(self, statement: str, parameters: dict[str, Any]) -> list[Row]:
        return self._cursor.execute(statement, parameters, prepare=True, binary=True).fetchall()
