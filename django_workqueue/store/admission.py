"""Admission on PostgreSQL: which concurrency keys have jobs that wait, and letting jobs go, in one statement each."""

from __future__ import annotations

from ..models import Job

JOB = Job._meta.db_table

# Literals, as the indexes are partial ones.
_TAKEN = "state IN ('ready', 'leased') AND concurrency_key IS NOT NULL"
_BLOCKED = "state = 'blocked' AND concurrency_key IS NOT NULL"


def _next_key(queue: str, tenant: str, key: str) -> str:
    """Return the descent to the first key behind this one for which a job waits."""
    return f"""
    SELECT queue, tenant, concurrency_key FROM {JOB}
    WHERE {_BLOCKED} AND (queue, tenant, concurrency_key) > ({queue}, {tenant}, {key})
    ORDER BY queue, tenant, concurrency_key LIMIT 1"""


def _of(keys: str) -> str:
    return f"queue = {keys}.queue AND tenant = {keys}.tenant AND concurrency_key = {keys}.key"


# One descent for each key, one to its first job, and as many entries as its limit lets be ready or leased.
BLOCKED_KEYS = f"""
WITH RECURSIVE walk(queue, tenant, key, step) AS (
    SELECT first.*, 1 FROM ({_next_key("%(queue)s", "%(tenant)s", "%(key)s")}) first
    UNION ALL
    SELECT next.*, step + 1
    FROM walk CROSS JOIN LATERAL ({_next_key("walk.queue", "walk.tenant", "walk.key")}) next
    WHERE step < %(limit)s)
SELECT queue, tenant, key,
       (SELECT count(*) FROM {JOB} WHERE {_TAKEN} AND {_of("walk")})
       < (SELECT coalesce(concurrency_limit, 1) FROM {JOB} WHERE {_BLOCKED} AND {_of("walk")}
          ORDER BY rank, ready_at, id LIMIT 1)
FROM walk ORDER BY queue, tenant, key
"""

# The first job that waits says how many are looked at; of those that disagree, each waits for its own limit.
# MATERIALIZED: without the fence the locking subquery may run again and lock more rows than are free.
ADMIT = f"""
WITH asked AS (
    SELECT %(queue)s::text AS queue, tenant, key
    FROM unnest(%(tenants)s::text[], %(keys)s::text[]) AS pair(tenant, key)),
chosen AS MATERIALIZED (
    SELECT waiting.id
    FROM asked
    CROSS JOIN LATERAL (SELECT count(*) AS taken FROM {JOB} WHERE {_TAKEN} AND {_of("asked")}) slots
    CROSS JOIN LATERAL (
        SELECT coalesce(concurrency_limit, 1) AS slots FROM {JOB}
        WHERE {_BLOCKED} AND {_of("asked")} AND task <> ALL(%(paused)s::text[])
        ORDER BY rank, ready_at, id LIMIT 1) head
    CROSS JOIN LATERAL (
        SELECT id, most, row_number() OVER () AS place
        FROM (
            SELECT id, coalesce(concurrency_limit, 1) AS most FROM {JOB}
            WHERE {_BLOCKED} AND {_of("asked")} AND task <> ALL(%(paused)s::text[])
            ORDER BY rank, ready_at, id LIMIT greatest(head.slots - slots.taken, 0)
            FOR NO KEY UPDATE SKIP LOCKED) free) waiting
    WHERE slots.taken + waiting.place <= waiting.most)
UPDATE {JOB} SET state = 'ready' WHERE id = ANY(ARRAY(SELECT id FROM chosen)) RETURNING tenant
"""
