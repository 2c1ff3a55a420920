"""
A queue after a month of work: every table filled, by the server itself.

Queues, tasks, workers and tenants are as many at every size; what grows is the rows. What a list must be able to find
is not among its newest rows: leased jobs are old, one queue and one task have a few old rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from django.db.models import Model

from django_workqueue.models import (
    DeadLetter,
    Failure,
    FinishedJob,
    Job,
    Lease,
    Pause,
    Queue,
    QueueMinute,
    Schedule,
    Step,
    Worker,
    Workflow,
    WorkflowMember,
)

from .database import Database
from .rows import insert

QUEUES, TASKS, TENANTS, WORKERS = 20, 20, 500, 12
LEASES, LEASED = 120, 240
RARE = 3
"""Rows of the queue and the task that have hardly any; they are the oldest."""
STEP = "interval '2.5 seconds'"
"""Between two jobs: five million of them are four months."""

# Ids ascend with their number, and those of one kind lie behind those of another.
ID = "('{kind}000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid"
LIVE_ID, DEAD_ID, DONE_ID = (ID.format(kind=kind) for kind in ("c1", "b1", "a1"))
FLOW_ID = ID.format(kind="d1")
_MEMBERS = 10
_MEMBER_OF = "('d1000000-0000-7000-8000-' || lpad(to_hex(1 + (i - 1) / %(members)s), 12, '0'))::uuid"

_AGO = f"(statement_timestamp() - (%(last)s - i) * {STEP})"
_QUEUE = f"CASE WHEN i <= {RARE} THEN 'rare' WHEN i %% 5 > 0 THEN 'default' ELSE 'queue-' || i %% {QUEUES} END"
_TASK = f"CASE WHEN i <= {RARE} THEN 'shop.rare.once' ELSE 'shop.tasks.job_' || i * 7 %% {TASKS} END"
_JOB = {
    "queue": _QUEUE,
    "tenant": f"CASE WHEN i %% 8 = 7 THEN 'large' ELSE 'tenant-' || i * 11 %% {TENANTS} END",
    "task": _TASK,
    "args": "'[' || i || ', \"an argument of some length\"]'",
    "kwargs": "'{\"order_id\": ' || i || ', \"user\": \"user-' || i %% 997 || '\"}'",
    "priority": "i %% 3 - 1",
    "metadata": "'{\"correlation_id\": \"correlation-' || i || '\"}'",
    "enqueued_at": _AGO,
}
_ENDED = {**_JOB, "dedupe_key": "CASE WHEN i %% 20 = 0 THEN 'key-' || i END", "attempts": "1 + (i %% 5)::int"}
_GROUP = "CASE WHEN i %% 8 = 3 THEN 1 ELSE i * 13 %% %(groups)s END"
_ERROR = f"'shop.errors.Error' || {_GROUP} || ': order ' || i || ' was refused'"
# The first of all are leased, as the oldest jobs are; then all sorts in turn.
_STATE = (
    "CASE WHEN i <= %(leased)s THEN 'leased' WHEN i %% 8 = 1 THEN 'blocked' WHEN i %% 8 = 2 THEN 'parked'"
    " WHEN i %% 8 = 4 THEN 'scheduled' ELSE 'ready' END"
)
LIVE = {
    **_JOB,
    "id": LIVE_ID,
    "dedupe_key": "CASE WHEN i %% 20 = 0 THEN 'key-' || i END",
    "concurrency_key": "CASE WHEN i > %(leased)s AND i %% 8 = 1 THEN 'key-' || i %% 90 END",
    "concurrency_limit": "CASE WHEN i > %(leased)s AND i %% 8 = 1 THEN 1 END",
    "state": _STATE,
    "ready_at": f"CASE WHEN ({_STATE}) = 'scheduled' THEN statement_timestamp() + i * {STEP} ELSE {_AGO} END",
    "attempts": f"CASE WHEN ({_STATE}) = 'leased' THEN 1 ELSE 0 END",
    "last_error": f"CASE WHEN i %% 10 = 0 THEN {_ERROR} ELSE '' END",
    "lease_id": "CASE WHEN i <= %(leased)s THEN 1 + i %% %(leases)s END",
}
DONE = {
    **_ENDED,
    "id": DONE_ID,
    "outcome": "CASE WHEN i %% 8 = 0 THEN 'cancelled' ELSE 'succeeded' END",
    "result": "'{\"total\": ' || i || '}'",
    "worker": f"'worker-' || i %% {WORKERS}",
    "started_at": f"{_AGO} + interval '1 second'",
    "finished_at": f"{_AGO} + interval '2 seconds'",
    "expires_at": f"{_AGO} + interval '200 days'",
}
DEAD = {
    **_ENDED,
    "id": DEAD_ID,
    "reason": "CASE WHEN i %% 7 = 0 THEN 'rejected' WHEN i <= 3 THEN 'undecodable' ELSE 'exhausted' END",
    "fingerprint": f"md5(({_GROUP})::text)",
    "last_error": _ERROR,
    "died_at": f"{_AGO} + interval '1 minute'",
    "acknowledged_at": f"CASE WHEN i %% 3 = 0 THEN {_AGO} + interval '2 minutes' END",
    "acknowledged_by": "CASE WHEN i %% 3 = 0 THEN 'olga' ELSE '' END",
}
_OF_DEAD = "('b1000000-0000-7000-8000-' || lpad(to_hex(1 + (i - 1) / 2), 12, '0'))::uuid"
FAILED = {
    "job_id": _OF_DEAD,
    "attempt": "1 + i %% 2",
    "kind": "CASE WHEN i %% 40 = 0 THEN 'lapsed' ELSE 'error' END",
    "error_class": "'shop.errors.Error' || (1 + (i - 1) / 2) * 13 %% %(groups)s",
    "message": "'order ' || i || ' was refused'",
    "traceback": "repeat('  File \"shop/tasks.py\", line 1, in job' || chr(10), 10)",
    "worker": "'worker-1'",
    "lease_id": "i",
    "started_at": f"{_AGO}",
    "failed_at": f"{_AGO} + interval '1 second'",
}
MINUTE = {
    # Forty rows a minute: two tasks in each of five queues, by four workers.
    "minute": "date_trunc('minute', statement_timestamp()) - (%(last)s - i) / 40 * interval '1 minute'",
    "queue": "CASE WHEN i %% 5 = 0 THEN 'default' ELSE 'queue-' || i %% 5 * 5 %% 20 END",
    "task": "'shop.tasks.job_' || i / 5 %% 2",
    "worker": "'worker-' || i / 10 %% 4",
    "done": "50 + i %% 7",
    "failed": "i %% 3",
    "wait_histogram": "'1,2,3,4,5,6,7,8,9,' || i %% 9",
    "run_histogram": "'0,0,0,4,5,6,7,8,9,' || i %% 9",
}
# What a worker's prune has made of those that are older than a day: ten rows an hour.
HOUR = MINUTE | {
    "minute": "date_trunc('hour', statement_timestamp()) - (26 + (%(last)s - i) / 10) * interval '1 hour'",
    "worker": "''",
    "is_hour": "true",
    "done": "12000 + i %% 7",
}
LEASE = {
    "worker": f"'worker-' || i %% {WORKERS}",
    "queue": "'default'",
    "acquired_at": "statement_timestamp()",
    "renewed_at": "statement_timestamp()",
    "expires_at": "statement_timestamp() + interval '1 hour'",
    "deadline_at": "statement_timestamp() + interval '2 hours'",
}
WORKER = {
    "id": "'worker-' || i",
    "name": "'worker-' || i",
    "host": "'host-' || i %% 4",
    "pid": "1000 + i",
    "queues": "'*'",
    "slots": "16",
    "versions": "'django-workqueue 0.1'",
    "started_at": "statement_timestamp() - i * interval '1 minute'",
    "seen_at": "statement_timestamp() + interval '1 day'",
    "running": "8",
}
STEPS = {
    "id": ID.format(kind="e1"),
    "tenant": "''",
    "key": "md5(i::text)",
    "digest": "md5((i + 1)::text)",
    "job_id": DEAD_ID,
    "name": "'charge'",
    "state": "'done'",
    "begun_at": _AGO,
    "expires_at": f"{_AGO} + interval '300 days'",
}
SCHEDULE = {
    "name": "'schedule-' || i",
    "task": _TASK,
    "interval": "interval '1 hour'",
    "next_at": "statement_timestamp() + i * interval '1 hour'",
    "plan": "'planned'",
}
FLOW = {
    "id": FLOW_ID,
    "tenant": f"'tenant-' || i %% {TENANTS}",
    "title": "'shop.tasks.ship'",
    "state": "CASE WHEN i %% 10 = 0 THEN 'failed' WHEN i <= 3 THEN 'cancelled' WHEN i %% 3 = 0 THEN 'running'"
    " ELSE 'succeeded' END",
    "size": "%(members)s",
    "done": "i %% %(members)s",
    "retention": "interval '1 day'",
    "enqueued_at": _AGO,
}
MEMBER = {
    "id": ID.format(kind="f1"),
    "workflow_id": _MEMBER_OF,
    "position": "(i - 1) %% %(members)s",
    "last": "(i - 1) %% %(members)s",
    "state": "CASE WHEN i %% 4 = 0 THEN 'waiting' ELSE 'done' END",
    "task": _TASK,
    "done_at": f"CASE WHEN i %% 4 > 0 THEN {_AGO} END",
}
PAUSE = {
    "kind": "'tenant'",
    "name": "'paused-' || i",
    "paused_at": "statement_timestamp()",
    "paused_by": "'olga'",
}
_QUEUES = {"name": "CASE WHEN i = 1 THEN 'default' ELSE 'queue-' || i END", "done": "i * 1000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """How many rows there are of what grows."""

    live: int
    finished: int
    dead: int
    groups: int
    minutes: int
    """Rollups, forty for each minute of the clock."""
    hours: int
    """Rollups of what is older than a day, ten for each hour."""
    workflows: int

    def tables(self) -> Iterator[tuple[type[Model], dict[str, str], int]]:
        """Yield each table with its columns and the number of its rows."""
        yield Queue, _QUEUES, QUEUES
        yield Worker, WORKER, WORKERS
        yield Pause, PAUSE, 3
        yield Schedule, SCHEDULE, 100
        yield Lease, LEASE, LEASES
        yield Job, LIVE, self.live
        yield FinishedJob, DONE, self.finished
        yield DeadLetter, DEAD, self.dead
        yield Failure, FAILED, 2 * self.dead
        yield Step, STEPS, self.dead
        yield QueueMinute, MINUTE, self.minutes
        yield QueueMinute, HOUR, self.hours
        yield Workflow, FLOW, self.workflows
        yield WorkflowMember, MEMBER, _MEMBERS * self.workflows

    def times(self, scale: float) -> Month:
        """Return the same with so many times the rows, and no fewer than a list has on a page or two."""
        return Month(**{name: max(250, round(count * scale)) for name, count in asdict(self).items()})

    def fill(self, database: Database) -> None:
        """Store all rows in empty tables."""
        counts = {"leases": LEASES, "leased": LEASED, "groups": self.groups, "members": _MEMBERS}
        for model, columns, rows in self.tables():
            insert(database, model, columns, rows, **counts)


THOUSAND = Month(live=1000, finished=1000, dead=1000, groups=300, minutes=1000, hours=1000, workflows=1000)
FULL = Month(
    live=1_000_000,
    finished=5_000_000,
    dead=50_000,
    groups=500,
    minutes=40 * 60 * 25,
    hours=10 * 24 * 29,
    workflows=20_000,
)
