"""Settle: decide what becomes of an attempt, write it behind the fence, and tell those who should know."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from ..conf import get_settings
from ..domain.contract import AnyTaskResult, TaskResultStatus, task_finished
from ..domain.outcomes import Bury, Cancel, Cancelled, ClaimedJob, Decision, Failed, Retry, Settlement, Succeeded
from ..domain.policies import exhausted
from ..domain.registry import resolve
from ..domain.states import DeathReason, FailureKind
from ..exceptions import LeaseLostError, TaskNotRegisteredError
from ..models import Job
from ..store import Store
from ..store.reap import Lanes
from .cancel import tell_cancelled
from .events import announce, announce_death, announce_loss, is_listened_to, job_fields
from .limits import admit, admit_on_commit, keys_of
from .results import of_attempt
from .wake import wake
from .workflow import announce_enqueued, ready_lanes

logger = logging.getLogger("django_workqueue.settle")

PUT_OFF_AT_LEAST = timedelta(seconds=1)
"""
The shortest time between two looks for a task that no worker knows, and from a timeout to the next attempt: without a
backoff the job would spin through the fleet, or meet a thread that is about to end with its process.
"""


def complete(
    store: Store,
    lease_id: int,
    done: Sequence[Settlement],
    *,
    worker: str,
    last: bool,
    on_started: Callable[[Lanes], None] | None = None,
) -> list[ClaimedJob]:
    """
    Record these successes of one lease and return the jobs that were refused, since the lease no longer held them.

    ``last`` says that the lease covers nothing else any more. ``on_started`` is told the lanes of jobs that follow in
    workflows.
    """
    settled, started = _write(store, lease_id, done, worker=worker, last=last)
    if started:
        _tell_started(store, started, on_started)
    if is_listened_to(task_finished):
        for settlement in done:
            if settlement.job.id in settled:
                _announce_finish(store, settlement, worker)
    if len(settled) == len(done):
        return []
    return [settlement.job for settlement in done if settlement.job.id not in settled]


def complete_within(store: Store, settlement: Settlement, *, worker: str) -> None:
    """
    Record a success in the transaction of the body itself. Raises LeaseLostError, to roll all of it back, when refused.

    The lease is left to ``acknowledge``: only who holds it knows what else it covers.
    """
    job = settlement.job
    settled, started = _write(store, job.lease_id, [settlement], worker=worker, last=False)
    if job.id not in settled:
        raise loss_of(store, job)
    if started:
        wake(store, ready_lanes(started))
        admit_on_commit(store, keys_of(started))
        store.on_commit(lambda: announce_enqueued(started))


def was_committed(store: Store, settlement: Settlement, *, worker: str) -> bool:
    """Whether an atomic task's own transaction recorded its success; looked up where the commit gave no answer."""
    return settlement.outcome is settlement.committed or store.is_completed(settlement.job, worker)


def acknowledge(store: Store, settlement: Settlement, *, worker: str, last: bool) -> None:
    """Take note of a success that is recorded: announce it and, as the ``last`` of its lease, close that."""
    if last:
        store.release(settlement.job.lease_id, (), last=True)
    if settlement.committed is not None and is_listened_to(task_finished):
        _announce_finish(store, settlement._replace(outcome=settlement.committed), worker)


def _write(
    store: Store, lease_id: int, done: Sequence[Settlement], *, worker: str, last: bool
) -> tuple[set[UUID], Sequence[Job]]:
    """Move succeeded jobs out of the live table. Returns the ids that were held, and jobs that follow in workflows."""
    if all(each.job.workflow is None for each in done):
        return store.complete(lease_id, done, worker=worker, last=last), ()
    return store.complete_members(lease_id, done, worker=worker, last=last)


def _tell_started(store: Store, started: Sequence[Job], on_started: Callable[[Lanes], None] | None) -> None:
    lanes = ready_lanes(started) | admit(store, keys_of(started))
    wake(store, lanes)
    if on_started is not None:
        on_started(lanes)
    announce_enqueued(started)


def fail(store: Store, settlement: Settlement, *, worker: str, last: bool) -> Decision | None:
    """
    Record an attempt that did not succeed and return what was done.

    None when it was refused, since the lease no longer held.
    """
    done = store.fail(settlement, decide(store, settlement), worker=worker, last=last)
    if done is None:
        return None
    _log_end(settlement, done)
    if not isinstance(done, Retry) and is_listened_to(task_finished):
        _announce_finish(store, settlement, worker)
    if isinstance(done, Bury):
        _announce_death(settlement, done)
    return done


def release(store: Store, lease_id: int, job_ids: Collection[UUID], *, last: bool) -> set[UUID]:
    """Give unstarted jobs back, the attempt not counted, and return the ids that were still held."""
    return tell_cancelled(store, store.release(lease_id, job_ids, last=last))


def release_unknown(store: Store, worker: str, known: Collection[int]) -> set[UUID]:
    """Give back what ``worker`` holds under leases that it does not know of, and return the ids."""
    return tell_cancelled(store, store.release_unknown(worker, known))


def refuse(store: Store, job: ClaimedJob) -> LeaseLostError:
    """Log and announce that what a worker reports about ``job`` was refused, and return the error that says why."""
    error = loss_of(store, job)
    reason = error.reason
    logger.warning("%s", error, extra=job_fields(job) | {"reason": reason})
    announce_loss(
        job_id=job.id, task=job.task, queue=job.queue, tenant=job.tenant, lease_id=job.lease_id, reason=reason
    )
    return error


def loss_of(store: Store, job: ClaimedJob) -> LeaseLostError:
    """Return the error that says why the lease of ``job`` no longer holds."""
    reason, holder = store.loss(job.lease_id, job.id)
    return LeaseLostError(job.lease_id, reason, job_id=job.id, holder=holder)


def decide(store: Store, settlement: Settlement) -> Decision:
    """Return what becomes of an attempt that did not succeed. The one place that knows the rules."""
    match settlement.outcome:
        case Failed() as failed:
            return _after_failure(store, settlement, failed)
        case Cancelled():
            return Cancel()
        case Succeeded():
            raise TypeError(f"Job {settlement.job.id} succeeded; there is nothing to decide.")


def _after_failure(store: Store, settlement: Settlement, failed: Failed) -> Decision:
    job = settlement.job
    match failed.kind:
        case FailureKind.REJECTED:
            return Bury(DeathReason.REJECTED)
        case FailureKind.UNDECODABLE:
            return Bury(DeathReason.UNDECODABLE)
        case FailureKind.UNKNOWN_TASK:
            return _put_off(store, settlement)
        case FailureKind.INTERRUPTED:
            return Retry(timedelta(), counted=False)
        case _ if exhausted(job.attempts, job.max_attempts):
            return Bury(DeathReason.EXHAUSTED)
        case _:
            return Retry(_delay(settlement, failed), if_cancelled=Bury(DeathReason.CANCELLED))


def _delay(settlement: Settlement, failed: Failed) -> timedelta:
    job = settlement.job
    delay = settlement.backoff.delay(job.attempts, job.id) if failed.retry_after is None else failed.retry_after
    return max(delay, PUT_OFF_AT_LEAST) if failed.kind is FailureKind.TIMEOUT else delay


def _put_off(store: Store, settlement: Settlement) -> Decision:
    """Wait for the task to be deployed, without using attempts, for WORKQUEUE['UNKNOWN_TASK_PATIENCE']."""
    job = settlement.job
    times, since = store.put_off_since(job.id, job.attempts)
    if since is not None and store.now() - since >= get_settings().unknown_task_patience:
        return Bury(DeathReason.UNKNOWN_TASK)
    return Retry(max(settlement.backoff.delay(times + 1, job.id), PUT_OFF_AT_LEAST), counted=False)


def _log_end(settlement: Settlement, decision: Decision) -> None:
    job, failed = settlement.job, settlement.outcome
    fields, what = job_fields(job), "cancelled"
    if isinstance(failed, Failed):
        fields |= {"kind": failed.kind.value, "error_class": failed.error_class}
        # The class only: a message may quote what the job was given.
        what = failed.error_class or failed.kind.value
    if isinstance(decision, Cancel):
        logger.info("Job %s of %s was cancelled in attempt %d.", job.id, job.task, job.attempts, extra=fields)
    elif isinstance(decision, Bury):
        logger.error(
            "Job %s of %s died (%s): %s.",
            job.id,
            job.task,
            decision.reason.value,
            what,
            extra=fields | {"reason": decision.reason.value},
        )
    else:
        wait = decision.delay.total_seconds()
        logger.info(
            "Job %s of %s failed attempt %d of %d: %s; next try in %g s.",
            job.id,
            job.task,
            job.attempts,
            job.max_attempts,
            what,
            wait,
            extra=fields | {"retry_in_seconds": wait},
        )


def _announce_finish(store: Store, settlement: Settlement, worker: str) -> None:
    try:
        task = resolve(settlement.job.task)
    except TaskNotRegisteredError:
        return
    announce(task_finished, task, lambda: _finished(store, settlement, worker))


def _finished(store: Store, settlement: Settlement, worker: str) -> AnyTaskResult:
    outcome, now = settlement.outcome, timezone.now()
    succeeded = isinstance(outcome, Succeeded)
    return of_attempt(
        store,
        settlement.job,
        resolve(settlement.job.task),
        status=TaskResultStatus.SUCCESSFUL if succeeded else TaskResultStatus.FAILED,
        worker=worker,
        started_at=now - timedelta(seconds=outcome.run_seconds),
        finished_at=now,
        result=outcome.result if isinstance(outcome, Succeeded) else None,
        has_failure=isinstance(outcome, Failed),
    )


def _announce_death(settlement: Settlement, decision: Bury) -> None:
    job, failed = settlement.job, settlement.outcome
    if isinstance(failed, Failed):
        announce_death(
            job_id=job.id,
            task=job.task,
            queue=job.queue,
            tenant=job.tenant,
            reason=decision.reason,
            last_error=failed.summary,
        )
