"""
The store on PostgreSQL: the hot statements in one round trip each, every one a walk along the index meant for it.

The planner cannot be trusted with tables that are empty at one moment and full at the next: after a vacuum of the empty
table it believes so for minutes, and a scan or a sort of the whole backlog looks cheap to it. So a worker's
session rules those plans out, state names stand as literals where a partial index must be proven, and CTEs are fences
against re-evaluation. Time is ``statement_timestamp()``: ``now()`` stands still in a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.expressions import Expression
from django.db.models.functions import Now
from django.utils import timezone

from ..domain.limits import LimitedKey
from ..domain.outcomes import ClaimedJob, Settlement
from ..models import Failure, FinishedJob, Job, Lease, Worker, WorkflowMember
from ..models.base import COPIED
from . import bulk, rows
from .admission import ADMIT, BLOCKED_KEYS
from .arrays import Ids, segments
from .claim import CLAIMED_COLUMNS, Claim, ClaimOrder
from .enqueue import stamp
from .limits import FIRST_KEY, KEYS_AT_ONCE, BlockedKey
from .listening import NotifyingStore
from .reap import Lanes, Outlook
from .session import PIN_PLANS, PooledSession, Session
from .settle import result_of
from .vacuum import PostgresSurveying
from .walks import LANES, LANES_BEHIND, QUEUES, READY_WORK
from .watch import Beat, ReadyWork

JOB, LEASE, FINISHED, FAILURE, WORKER = (model._meta.db_table for model in (Job, Lease, FinishedJob, Failure, Worker))

# Lanes in their turn, each in segments that begin at a mark: the index is entered behind the dead entries that an old
# snapshot keeps at its head. ``chosen`` cuts the batch before the first job whose last lease lapsed, or to that job
# alone. MATERIALIZED: without the fence the locking subquery may run again and lock more rows than the limit.
CLAIM = f"""
WITH picked AS MATERIALIZED (
    SELECT id, lapses, row_number() OVER () AS place
    FROM (
        SELECT ready.id, ready.lapses
        FROM unnest(%(tenants)s::text[], %(firsts)s::int[], %(lasts)s::int[]) AS lane(tenant, first, last)
        CROSS JOIN LATERAL (
            SELECT part.id, part.lapses
            FROM generate_series(lane.first, lane.last) AS segment(n)
            CROSS JOIN LATERAL (
                SELECT id, lapses FROM {JOB}
                WHERE state = 'ready' AND queue = %(queue)s AND tenant = lane.tenant
                  AND (rank, ready_at, id) >= ((%(ranks)s::smallint[])[segment.n],
                      (%(afters)s::timestamptz[])[segment.n], (%(after_ids)s::uuid[])[segment.n])
                  AND rank <= (%(ends)s::smallint[])[segment.n]
                ORDER BY rank, ready_at, id LIMIT %(quantum)s
                FOR NO KEY UPDATE SKIP LOCKED) part
            LIMIT %(quantum)s) ready
        LIMIT %(limit)s) taken),
chosen AS MATERIALIZED (
    SELECT id, place FROM picked
    WHERE place <= coalesce(
        (SELECT greatest(min(place) - 1, 1) FROM picked WHERE lapses > 0 HAVING count(*) > 0), %(limit)s)),
opened AS (
    INSERT INTO {LEASE} (worker, queue, acquired_at, renewed_at, expires_at, deadline_at)
    SELECT %(worker)s::text, %(queue)s::text, statement_timestamp(), statement_timestamp(),
           statement_timestamp() + least(%(lease)s, %(max_lease)s), statement_timestamp() + %(max_lease)s
    WHERE EXISTS (SELECT FROM chosen)
    RETURNING id)
UPDATE {JOB} SET state = 'leased', lease_id = (SELECT id FROM opened), attempts = attempts + 1
WHERE id = ANY(ARRAY(SELECT id FROM chosen))
RETURNING {", ".join(CLAIMED_COLUMNS)}, (SELECT count(*) FROM picked), statement_timestamp()
"""

# The delete proves ownership: a reaper that came first has taken the jobs from under this lease.
# The lease is locked before its jobs, as the reaper locks them, or the two could wait for each other. Not shared: of
# two reports of one job, the second after an answer that was lost, each would hold up the other's end of the lease.
_FENCE = f"""
fence AS MATERIALIZED (
    SELECT id FROM {LEASE} WHERE id = %(lease)s AND expires_at > statement_timestamp() FOR NO KEY UPDATE),
closed AS (
    DELETE FROM {LEASE} WHERE id = %(lease)s AND %(last)s AND expires_at > statement_timestamp())"""

# Failures live as long as the row that they explain; where none is kept, they go with the job.
_FORGOTTEN = f"""
forgotten AS (
    DELETE FROM {FAILURE} USING gone
    WHERE {FAILURE}.job_id = gone.id AND gone.last_error <> '' AND gone.kept_seconds <= 0)"""

# Nearly always all are gone, and their number says so: their ids need not travel back.
_GONE = "SELECT count(*), CASE WHEN count(*) < cardinality(%(ids)s::uuid[]) THEN array_agg(id) END FROM gone"

# Where no row is kept, results and times need not travel: a tenth of the time of a short job.
COMPLETE = f"""
WITH {_FENCE},
gone AS (
    DELETE FROM {JOB} WHERE id = ANY(%(ids)s::uuid[]) AND lease_id = (SELECT id FROM fence)
    RETURNING id, last_error, 0 AS kept_seconds),
{_FORGOTTEN}
{_GONE}
"""

COMPLETE_AND_KEEP = f"""
WITH {_FENCE},
gone AS (
    DELETE FROM {JOB} USING unnest(%(ids)s::uuid[], %(results)s::text[], %(runs)s::float8[], %(kept)s::float8[])
        AS done(id, result, run_seconds, kept_seconds)
    WHERE {JOB}.id = done.id AND lease_id = (SELECT id FROM fence)
    RETURNING {", ".join(f"{JOB}.{name}" for name in COPIED)}, done.result, done.run_seconds, done.kept_seconds),
{_FORGOTTEN},
kept AS (
    INSERT INTO {FINISHED} ({", ".join(COPIED)}, outcome, result, worker, started_at, finished_at, expires_at)
    SELECT {", ".join(COPIED)}, 'succeeded', result, %(worker)s::text,
           statement_timestamp() - make_interval(secs => run_seconds), statement_timestamp(),
           statement_timestamp() + make_interval(secs => kept_seconds)
    FROM gone WHERE kept_seconds > 0)
{_GONE}
"""

RENEW = f"""
UPDATE {LEASE} SET renewed_at = statement_timestamp(),
    expires_at = greatest(expires_at, least(statement_timestamp() + make_interval(secs => beat.seconds), deadline_at))
FROM unnest(%(ids)s::bigint[], %(seconds)s::float8[]) AS beat(id, seconds)
WHERE {LEASE}.id = beat.id AND expires_at > statement_timestamp()
RETURNING {LEASE}.id
"""

PROMOTE = f"""
UPDATE {JOB} SET state = CASE WHEN concurrency_key IS NULL THEN 'ready' ELSE 'blocked' END
WHERE id = ANY(ARRAY(
    SELECT id FROM {JOB} WHERE state = 'scheduled' AND ready_at <= statement_timestamp()
    ORDER BY ready_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED))
RETURNING queue, tenant, concurrency_key
"""

NEXT_DUE = f"""
SELECT extract(epoch FROM ready_at - statement_timestamp())::float8
FROM {JOB} WHERE state = 'scheduled' ORDER BY ready_at LIMIT 1
"""


# Each with the order of its index, or the planner would take a scan, though it is ruled out: of leases, which are few,
# for want of an index on the expiry.
OUTLOOK = f"""
SELECT ({NEXT_DUE}),
       (SELECT true FROM {LEASE} WHERE expires_at <= statement_timestamp() ORDER BY id LIMIT 1),
       coalesce((SELECT true FROM {JOB} WHERE state = 'blocked' AND concurrency_key IS NOT NULL
                 ORDER BY queue, tenant, concurrency_key LIMIT 1),
                (SELECT true FROM {JOB} WHERE state = 'parked' ORDER BY task LIMIT 1))
"""

BEAT = f"""
UPDATE {WORKER} SET seen_at = statement_timestamp(), clock_ahead = %(now)s::timestamptz - statement_timestamp(),
    state = %(state)s, memory_bytes = %(memory_bytes)s, running = %(running)s, done = %(done)s, failed = %(failed)s
WHERE id = %(id)s RETURNING request
"""


class PostgresStore(PostgresSurveying, NotifyingStore):
    """PostgreSQL 15 and later, any number of hosts."""

    _session: Session | None = None

    def now(self) -> datetime:
        """Return the server's time: hosts' clocks may be minutes apart. Without zone where Django reads rows so."""
        stamp: datetime = self._rows("SELECT statement_timestamp()")[0][0]
        return stamp if settings.USE_TZ else stamp.replace(tzinfo=None)

    def clock(self) -> Expression:
        """Return ``statement_timestamp()``."""
        return Now()

    def connection_limit(self) -> int | None:
        """Return ``max_connections`` less what is kept for superusers; None behind a pooler, which has its own."""
        if self.pooled:
            return None
        limit: int = self._rows(
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        )[0][0]
        return limit

    def pin(self) -> None:
        """Pin the plans up to the end of the transaction. Its waits are the project's own affair."""
        with self.connection.cursor() as cursor:
            cursor.execute(PIN_PLANS)

    def prepare(self) -> bool:
        """Connect if need be, and pin the plans of each new connection."""
        is_new = super().prepare()
        if is_new:
            self._session = (PooledSession if self.pooled else Session)(self.connection)
        return is_new

    def _insert(self, jobs: Sequence[Job]) -> None:
        """Store jobs that cannot clash. They get the statement's time for both stamps, where the caller gave none."""
        if len(jobs) == 1:
            rows.insert_one(self.connection, jobs[0])
            return
        if len(jobs) < bulk.FEWEST:
            super()._insert(jobs)
            return
        with self.transaction():
            self._stamp(jobs)
            bulk.copy_in(self.connection, jobs)

    def _insert_members(self, members: Sequence[WorkflowMember]) -> None:
        if len(members) < bulk.FEWEST:
            super()._insert_members(members)
        else:
            bulk.copy_members(self.connection, members)

    def _insert_where_free(self, jobs: Sequence[Job]) -> Iterable[Job]:
        """Store the jobs whose keys are free and return them."""
        if len(jobs) < bulk.FEWEST:
            return super()._insert_where_free(jobs)
        self._stamp(jobs)
        stored = bulk.insert_where_free(self.connection, jobs)
        return [job for job in jobs if job.pk in stored]

    def _stamp(self, jobs: Sequence[Job]) -> None:
        now = self.now()
        for job in jobs:
            stamp(job, now)

    def ready_queues(self) -> list[str]:
        """Return the names of the queues that have a ready job, in order. One index descent for each."""
        return [queue for (queue,) in self._rows(QUEUES)]

    def lanes(self, queue: str, *, after: str | None = None, limit: int = 1000) -> list[str]:
        """Return up to ``limit`` tenants with ready work in ``queue``, in order, beginning behind ``after``."""
        statement = LANES if after is None else LANES_BEHIND
        return [tenant for (tenant,) in self._rows(statement, {"queue": queue, "after": after, "limit": limit})]

    def claim(self, order: ClaimOrder) -> Claim:
        """See Claiming.claim. One statement; never waits for another worker."""
        parameters = segments(order.lanes) | {
            "worker": order.worker,
            "queue": order.queue,
            "limit": order.limit,
            "quantum": order.quantum,
            "lease": order.lease,
            "max_lease": order.max_lease,
        }
        rows = self._rows(CLAIM, parameters)
        jobs = [ClaimedJob._make(row[:-2]) for row in rows]
        turns = {lane.tenant: turn for turn, lane in enumerate(order.lanes)}
        # RETURNING promises no order. UUID's own comparison is a wrapper in Python around that of its number.
        jobs.sort(key=lambda job: (turns[job.tenant], -job.priority, job.ready_at, job.id.int))
        if not rows:
            return Claim([])
        *_, found, at = rows[0]
        return Claim(jobs, cut=found > len(rows), at=at)

    def complete(self, lease_id: int, done: Sequence[Settlement], *, worker: str, last: bool) -> set[UUID]:
        """See Settling.complete. One statement."""
        kept = [each.retention.total_seconds() for each in done]
        ids = Ids([each.job.id for each in done])
        parameters: dict[str, Any] = {"ids": ids, "lease": lease_id, "last": last}
        if any(kept):
            parameters["results"] = [result_of(each) for each in done]
            parameters["runs"] = [each.outcome.run_seconds for each in done]
            parameters |= {"kept": kept, "worker": worker}
        [(count, gone)] = self._rows(COMPLETE_AND_KEEP if any(kept) else COMPLETE, parameters)
        return set(ids) if count == len(ids) else set(gone or ())

    def renew(self, leases: Mapping[int, timedelta]) -> set[int]:
        """See Settling.renew. One statement for all leases."""
        parameters = {"ids": list(leases), "seconds": [length.total_seconds() for length in leases.values()]}
        return {pk for (pk,) in self._rows(RENEW, parameters)}

    def beat_worker(self, worker_id: str, beat: Beat) -> str | None:
        """See Watching.beat_worker. One statement."""
        rows = self._rows(BEAT, {"id": worker_id, "now": timezone.now(), **asdict(beat)})
        return rows[0][0] if rows else None

    def promote(self, *, limit: int = 500) -> Lanes:
        """See Reaping.promote. One statement."""
        return self._admit_promoted(self._rows(PROMOTE, {"limit": limit}))

    def next_due(self) -> timedelta | None:
        """See Reaping.next_due."""
        rows = self._rows(NEXT_DUE)
        return timedelta(seconds=rows[0][0]) if rows else None

    def blocked_keys(self, *, after: LimitedKey = FIRST_KEY, limit: int = KEYS_AT_ONCE) -> list[BlockedKey]:
        """See Limiting.blocked_keys. One statement."""
        queue, tenant, key = after
        rows = self._rows(BLOCKED_KEYS, {"queue": queue, "tenant": tenant, "key": key, "limit": limit})
        return [BlockedKey((queue, tenant, key), has_room) for queue, tenant, key, has_room in rows]

    def _fit(self, *, outermost: bool) -> None:
        """See Limiting._fit. A worker's own session is fit already."""
        if self._session is not None and self._session.is_of(self.connection):
            return
        # Under a stricter level the count would see what was there before the lock was had.
        if outermost:
            with self.connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        self.pin()

    def _admit(self, queue: str, pairs: Collection[tuple[str, str]], paused: Collection[str]) -> set[str]:
        """See Limiting._admit. One statement."""
        tenants, keys = map(list, zip(*pairs, strict=True))
        parameters = {"queue": queue, "tenants": tenants, "keys": keys, "paused": list(paused)}
        return {tenant for (tenant,) in self._rows(ADMIT, parameters)}

    def outlook(self) -> Outlook:
        """See Reaping.outlook. One statement."""
        seconds, lapsed, withheld = self._rows(OUTLOOK)[0]
        return Outlook(None if seconds is None else timedelta(seconds=seconds), bool(lapsed), bool(withheld))

    def ready_work(self, most: int) -> list[ReadyWork]:
        """See Watching.ready_work. One statement."""
        return [ReadyWork(*row) for row in self._rows(READY_WORK, {"most": most})]

    def is_unavailable(self, error: Exception) -> bool:
        """Whether the server is away: connection refused or lost, shutting down, starting up, or out of connections."""
        state = _state(error)
        # 57014 is a statement that took too long, which a reachable server said.
        return state is None or (state[:2] in {"08", "53", "57"} and state != "57014")

    def is_locked(self, error: Exception) -> bool:
        """Whether another session held a row or a table for too long, or waited for one of ours in turn."""
        return _state(error) in {"55P03", "40P01", "40001", "57014"}

    def _rows(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        if self._session is not None and self._session.is_of(self.connection):
            return self._session.rows(statement, parameters)
        with self.connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            rows: list[Any] = cursor.fetchall()
        return rows


def _state(error: Exception) -> str | None:
    """Return the SQLSTATE that the server answered, None when it did not."""
    return getattr(error.__cause__, "sqlstate", None)
