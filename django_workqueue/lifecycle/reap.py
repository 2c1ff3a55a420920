"""Reap: settle for those who never came back. Every worker does it; no leader is needed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

from ..conf import get_settings
from ..domain.outcomes import Bury, Cancel, Decision, Retry
from ..domain.policies import exhausted, reclaim_delay
from ..domain.states import DeathReason, FailureKind
from ..domain.steps import idempotency_key
from ..store import Store
from ..store.reap import Lanes, Lapse, Reclaimed
from ..store.watch import QueueCounts
from .cancel import tell_cancelled
from .events import announce_death
from .limits import admit
from .wake import notify

logger = logging.getLogger("django_workqueue.reap")


def reap(store: Store, *, limit: int = 20) -> list[Reclaimed]:
    """Take back the jobs of lapsed leases, each with its attempt counted, and return what moved."""
    reclaimed = store.reap(judge, limit=limit)
    _tell(reclaimed)
    _count(store, reclaimed, reaped=True)
    _wake(store, reclaimed)
    return reclaimed


def adopt(store: Store, workers: Collection[str]) -> list[Reclaimed]:
    """Take back at once what these workers, known to be gone, still held. Not counted as reaped."""
    reclaimed = store.adopt(workers, judge)
    _tell(reclaimed)
    _count(store, reclaimed, reaped=False)
    _wake(store, reclaimed)
    return reclaimed


def rescue(store: Store) -> set[UUID]:
    """Give back leased jobs whose lease row is gone, and return their ids."""
    return tell_cancelled(store, store.rescue_orphans())


def lanes_of(reclaimed: Sequence[Reclaimed]) -> Lanes:
    """Return the (queue, tenant) pairs to which jobs came back."""
    return {(each.queue, each.tenant) for each in reclaimed if each.died is None and not each.cancelled}


def judge(lapse: Lapse) -> Decision:
    """
    Return what becomes of a job whose lease ended without an outcome.

    A lapse that several jobs shared buries none of them, since only one can be the culprit: they come back to be
    claimed alone, and only a lapse alone makes a dead letter. A job that was to be cancelled has come to that end.
    """
    if lapse.cancel_requested:
        return Cancel()
    if exhausted(lapse.attempts, lapse.max_attempts) and not lapse.shared:
        return Bury(DeathReason.EXHAUSTED)
    if lapse.kind is FailureKind.ADOPTED:
        return Retry(timedelta())
    return Retry(reclaim_delay(get_settings().queue(lapse.queue).backoff, lapse.lapses, lapse.job_id))


def _wake(store: Store, reclaimed: Sequence[Reclaimed]) -> None:
    """Wake workers for what came back, and for what may go in its place."""
    notify(store, lanes_of(reclaimed))
    keys = {(each.queue, each.tenant, each.concurrency_key) for each in reclaimed}
    admit(store, {(queue, tenant, key) for queue, tenant, key in keys if key is not None})


def _tell(reclaimed: Sequence[Reclaimed]) -> None:
    for each in reclaimed:
        fields = {
            "job_id": str(each.job_id),
            "task": each.task,
            "queue": each.queue,
            "tenant": each.tenant,
            "attempt": each.attempts,
            "worker": each.worker,
            "kind": each.kind.value,
            "idempotency_key": idempotency_key(each.tenant, each.job_id),
        }
        if each.died is None:
            logger.warning(
                "Job %s of %s was cancelled with worker %s (%s)."
                if each.cancelled
                else "Job %s of %s came back from worker %s (%s).",
                each.job_id,
                each.task,
                each.worker,
                each.kind.value,
                extra=fields,
            )
            continue
        logger.error(
            "Job %s of %s died with worker %s (%s).", each.job_id, each.task, each.worker, each.kind.value, extra=fields
        )
        announce_death(
            job_id=each.job_id,
            task=each.task,
            queue=each.queue,
            tenant=each.tenant,
            reason=each.died,
            last_error=each.last_error,
        )


def _count(store: Store, reclaimed: Sequence[Reclaimed], *, reaped: bool) -> None:
    counts: dict[str, QueueCounts] = {}
    for each in reclaimed:
        queue = counts.setdefault(each.queue, QueueCounts())
        queue.reaped += reaped
        queue.failed += 1
        queue.dead += each.died is not None
        queue.cancelled += each.cancelled
    if counts:
        store.add_counts(counts)
