"""Walks along the ready index on PostgreSQL, one descent for each queue, lane or level: no scan of the backlog."""

from __future__ import annotations

from ..models import Job

JOB = Job._meta.db_table

QUEUES = f"""
WITH RECURSIVE walk(queue) AS (
    (SELECT queue FROM {JOB} WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT job.queue FROM {JOB} job
            WHERE job.state = 'ready' AND job.queue > walk.queue ORDER BY job.queue LIMIT 1)
    FROM walk WHERE walk.queue IS NOT NULL)
SELECT queue FROM walk WHERE queue IS NOT NULL
"""


# Two texts: a condition that may be absent is no condition of the index in a plan made once for all values.
def _lanes(behind: str = "") -> str:
    return f"""
WITH RECURSIVE walk(tenant, step) AS (
    (SELECT tenant, 1 FROM {JOB} WHERE state = 'ready' AND queue = %(queue)s {behind} ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT job.tenant FROM {JOB} job
            WHERE job.state = 'ready' AND job.queue = %(queue)s AND job.tenant > walk.tenant
            ORDER BY job.tenant LIMIT 1),
           step + 1
    FROM walk WHERE walk.tenant IS NOT NULL AND step < %(limit)s)
SELECT tenant FROM walk WHERE tenant IS NOT NULL
"""


LANES, LANES_BEHIND = _lanes(), _lanes("AND tenant > %(after)s")

# The heads of all queues, lanes and levels, one descent each: the index has the oldest job of a level in front.
READY_WORK = f"""
WITH RECURSIVE head(queue, tenant, rank, ready_at) AS (
    (SELECT queue, tenant, rank, ready_at FROM {JOB} WHERE state = 'ready'
     ORDER BY queue, tenant, rank, ready_at LIMIT 1)
    UNION ALL
    SELECT next.* FROM head CROSS JOIN LATERAL (
        SELECT queue, tenant, rank, ready_at FROM {JOB}
        WHERE state = 'ready' AND (queue, tenant, rank) > (head.queue, head.tenant, head.rank)
        ORDER BY queue, tenant, rank, ready_at LIMIT 1) next)
SELECT queue,
       (SELECT count(*) FROM (SELECT 1 FROM {JOB} job
                              WHERE job.state = 'ready' AND job.queue = head.queue LIMIT %(most)s) few),
       greatest(0, extract(epoch FROM statement_timestamp() - min(ready_at)))::float8
FROM head GROUP BY queue ORDER BY queue
"""
