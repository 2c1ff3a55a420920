"""The store on SQLite: one machine, one writer at a time."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ..models import Job
from .enqueue import Stored, stamp
from .orm import OrmStore


class SqliteStore(OrmStore):
    """
    SQLite runs inside the process, so the process's clock is its clock.

    Its own ``CURRENT_TIMESTAMP`` family stops at milliseconds, below the microseconds of the stored columns: a job
    made and claimed within one would not be ready yet.
    """

    def prepare(self) -> bool:
        """Begin every transaction of a worker as a writer: one that reads first cannot be upgraded under contention."""
        self.connection.transaction_mode = "IMMEDIATE"  # type: ignore[attr-defined]
        return super().prepare()

    def insert(self, jobs: Sequence[Job], *, given_ids: frozenset[UUID] = frozenset()) -> list[Stored]:
        """Store ``jobs`` stamped by the process's clock, to the microsecond. See Enqueueing.insert."""
        now = self.now()
        for job in jobs:
            stamp(job, now)
        return super().insert(jobs, given_ids=given_ids)

    def begins_as_writer(self) -> bool:
        """Whether the project's own transactions begin as writers."""
        mode = self.connection.settings_dict["OPTIONS"].get("transaction_mode") or ""
        return mode.upper() in {"IMMEDIATE", "EXCLUSIVE"}

    def has_write_ahead_log(self) -> bool:
        """Whether readers and the writer go on side by side. A database in memory needs no log for that."""
        with self.connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode")
            return cursor.fetchone()[0] in {"wal", "memory"}

    def is_unavailable(self, error: Exception) -> bool:
        """Whether the file cannot be opened or read, or stayed locked past the timeout; not a statement at fault."""
        code = getattr(error.__cause__, "sqlite_errorname", None)
        return code is None or code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR"))
