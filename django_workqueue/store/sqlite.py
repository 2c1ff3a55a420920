"""
The store on SQLite: one machine, one writer at a time.

The hot statements are written out: through the ORM, a claim and its completion took ten times as long as SQLite itself
does. A list of ids travels as one JSON text, of any length and without a statement of its own for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Field

from ..domain.ids import uuid_of
from ..domain.outcomes import ClaimedJob, Settlement
from ..models import Failure, FinishedJob, Job, Lease
from ..models.base import COPIED
from . import rows
from .claim import CLAIMED_COLUMNS, Claim, ClaimOrder, together
from .enqueue import Stored, stamp
from .orm import OrmStore
from .settle import result_of

JOB, LEASE, FINISHED, FAILURE = (model._meta.db_table for model in (Job, Lease, FinishedJob, Failure))
_LISTED = "(SELECT value FROM json_each(%s))"

# The row's number is there to find it again: shorter than its id, and no other index is needed.
PICK = f"""
SELECT rowid, {", ".join(CLAIMED_COLUMNS)} FROM {JOB}
WHERE state = 'ready' AND queue = %s AND tenant = %s ORDER BY rank, ready_at, id LIMIT %s
"""

TAKE = f"UPDATE {JOB} SET state = 'leased', lease_id = %s, attempts = attempts + 1 WHERE rowid IN {_LISTED}"

OPEN = f"""
INSERT INTO {LEASE} (worker, queue, acquired_at, renewed_at, expires_at, deadline_at) VALUES (%s, %s, %s, %s, %s, %s)
"""

CLOSE = f"DELETE FROM {LEASE} WHERE id = %s AND expires_at > %s"

RENEW = f"""
UPDATE {LEASE} SET renewed_at = %s, expires_at = max(expires_at, min(%s, deadline_at))
WHERE id IN {_LISTED} AND expires_at > %s RETURNING id
"""

HOLDS = f"SELECT 1 FROM {LEASE} WHERE id = %s AND expires_at > %s"

KEEP = f"""
INSERT INTO {FINISHED} ({", ".join(COPIED)}, outcome, result, worker, started_at, finished_at, expires_at)
SELECT {", ".join(COPIED)}, 'succeeded', %s, %s, %s, %s, %s FROM {JOB} WHERE id = %s AND lease_id = %s
"""

FORGET = f"DELETE FROM {FAILURE} WHERE job_id IN {_LISTED}"

REMOVE = f"DELETE FROM {JOB} WHERE id IN {_LISTED} AND lease_id = %s RETURNING id"


class SqliteStore(OrmStore):
    """
    SQLite runs inside the process, so the process's clock is its clock.

    Its own ``CURRENT_TIMESTAMP`` family stops at milliseconds, below the microseconds of the stored columns: a job
    made and claimed within one would not be ready yet.
    """

    has_one_writer = True

    def prepare(self) -> bool:
        """Begin every transaction of a worker as a writer: one that reads first cannot be upgraded under contention."""
        self.connection.transaction_mode = "IMMEDIATE"  # type: ignore[attr-defined]
        return super().prepare()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Begin as a writer, on a connection that is the project's own, and leave it as it was."""
        connection: Any = self.connection
        # Connecting sets the mode that the project chose.
        connection.ensure_connection()
        usual = connection.transaction_mode
        connection.transaction_mode = "IMMEDIATE"
        try:
            with self.transaction():
                yield
        finally:
            connection.transaction_mode = usual

    def insert(self, jobs: Sequence[Job], *, given_ids: frozenset[UUID] = frozenset()) -> list[Stored]:
        """Store ``jobs`` stamped by the process's clock, to the microsecond. See Enqueueing.insert."""
        now = self.now()
        for job in jobs:
            stamp(job, now)
        return super().insert(jobs, given_ids=given_ids)

    def _insert(self, jobs: Sequence[Job]) -> None:
        rows.insert_many(self.connection, jobs)

    def _insert_where_free(self, jobs: Sequence[Job]) -> Iterable[Job]:
        rows.insert_many(self.connection, jobs, where_free=True)
        return self._live(job.pk for job in jobs)

    def claim(self, order: ClaimOrder) -> Claim:
        """See Claiming.claim."""
        with self.transaction():
            found = list(self._pick_rows(order))
            picked = found[: together([row[_LAPSES] for row in found])]
            if not picked:
                return Claim([])
            lease_id = self._insert_lease(order)
            self._execute(TAKE, [lease_id, f"[{','.join(str(row[0]) for row in picked)}]"])
        return Claim(self._claimed(picked, lease_id), cut=len(picked) < len(found))

    def _insert_lease(self, order: ClaimOrder) -> int:
        now = self.now()
        moments = (now, now, now + min(order.lease, order.max_lease), now + order.max_lease)
        with self.connection.cursor() as cursor:
            cursor.execute(OPEN, [order.worker, order.queue, *map(self._stored, moments)])
            lease_id: int = cursor.lastrowid
        return lease_id

    def _close(self, lease_id: int, *, last: bool) -> None:
        if last:
            self._execute(CLOSE, [lease_id, self._stored(self.now())])

    def renew(self, leases: Mapping[int, timedelta]) -> set[int]:
        """See Settling.renew. One statement for the leases of each length."""
        renewed: set[int] = set()
        with self.transaction():
            now = self.now()
            at = self._stored(now)
            for length in set(leases.values()):
                ids = ",".join(str(pk) for pk in leases if leases[pk] == length)
                rows = self._rows(RENEW, [at, self._stored(now + length), f"[{ids}]", at])
                renewed.update(pk for (pk,) in rows)
        return renewed

    def _pick_rows(self, order: ClaimOrder) -> Iterator[tuple[Any, ...]]:
        room = order.limit
        for lane in order.lanes:
            if room <= 0:
                break
            taken = self._rows(PICK, [order.queue, lane.tenant, min(order.quantum, room)])
            room -= len(taken)
            yield from taken

    def _claimed(self, picked: Sequence[tuple[Any, ...]], lease_id: int) -> list[ClaimedJob]:
        """Return rows, read before they were taken, as the jobs that they are now. By columns, as that is fast."""
        zone = self.connection.timezone if settings.USE_TZ else None
        columns = dict(zip(("rowid", *CLAIMED_COLUMNS), zip(*picked, strict=True), strict=True))
        del columns["rowid"]
        for name in _UUIDS:
            columns[name] = tuple(None if value is None else _uuid(value) for value in columns[name])
        for name in _MOMENTS:
            columns[name] = tuple(None if value is None else value.replace(tzinfo=zone) for value in columns[name])
        columns["attempts"] = tuple(attempts + 1 for attempts in columns["attempts"])
        columns["lease_id"] = (lease_id,) * len(picked)
        return list(map(ClaimedJob._make, zip(*columns.values(), strict=True)))

    def complete(self, lease_id: int, done: Sequence[Settlement], *, worker: str, last: bool) -> set[UUID]:
        """See Settling.complete."""
        ids = {each.job.id for each in done}
        with self.transaction():
            now = self.now()
            if not self._rows(HOLDS, [lease_id, self._stored(now)]):
                return set()
            self._keep([each for each in done if each.retention], worker, now)
            gone = self._rows(REMOVE, [_listed(ids), lease_id])
            settled = ids if len(gone) == len(ids) else {_uuid(pk) for (pk,) in gone}
            # Failures live as long as the row that they explain. A job that has any was claimed with its last error.
            forgotten = [each.job.id for each in done if each.job.last_error and not each.retention]
            if forgotten:
                self._execute(FORGET, [_listed(settled.intersection(forgotten))])
            self._close(lease_id, last=last)
        return settled

    def _keep(self, done: Sequence[Settlement], worker: str, now: datetime) -> None:
        """Copy these jobs, as far as they are still held, to the finished ones."""
        finished_at = self._stored(now)
        copies = [
            (
                result_of(each),
                worker,
                self._stored(now - timedelta(seconds=each.outcome.run_seconds)),
                finished_at,
                self._stored(now + each.retention),
                each.job.id.hex,
                each.job.lease_id,
            )
            for each in done
        ]
        if copies:
            with self.connection.cursor() as cursor:
                cursor.executemany(KEEP, copies)

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

    def _stored(self, moment: datetime) -> str:
        """Return a time as its column has it."""
        return str(self.connection.ops.adapt_datetimefield_value(moment))

    def _rows(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def _execute(self, statement: str, parameters: Sequence[Any]) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, parameters)


def _columns_of(kind: str) -> tuple[str, ...]:
    """Return the claimed columns of a kind of field, or that refer to one."""
    fields: list[Field[Any, Any]] = [each for each in Job._meta.concrete_fields if each.attname in CLAIMED_COLUMNS]
    return tuple(each.attname for each in fields if getattr(each, "target_field", each).get_internal_type() == kind)


_LAPSES = 1 + CLAIMED_COLUMNS.index("lapses")
_UUIDS, _MOMENTS = _columns_of("UUIDField"), _columns_of("DateTimeField")


def _uuid(text: str) -> UUID:
    return uuid_of(int(text, 16))


def _listed(ids: Iterable[UUID]) -> str:
    """Return ids as the JSON list of what their column has."""
    return f"""["{'","'.join(each.hex for each in ids)}"]"""
