"""
Operate: what people do. The admin and the commands call these; whether the caller may is for them to ask.

Every function takes ``database``, the alias of the queue's database; None is the one that the settings name.
"""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from ..conf import get_settings
from ..domain.encoding import encode, plain
from ..domain.scope import Scope, Tenants
from ..domain.states import StepState
from ..exceptions import (
    InvalidStepError,
    StepInFlightError,
    StepNotFoundError,
)
from ..models import FinishedJob, Step
from ..store import store_for
from ..store.operate import Pruned
from ..store.reap import Reclaimed
from ..store.watch import COUNT_CAP, QueueStats
from .cancel import cancel as cancel_one
from .clashes import irrecoverable
from .copying import Copied, copy
from .dead_letters import Refusal, Requeued, acknowledge, amend, dead_letters, discard, requeue
from .exporting import export
from .moving import Moved, move, run_now
from .pausing import pausable, pause, paused, resume
from .reap import reap
from .workers import ask_worker, forget_worker, silence

__all__ = [
    "Copied",
    "Moved",
    "Refusal",
    "Requeued",
    "acknowledge",
    "amend",
    "ask_worker",
    "copy",
    "dead_letters",
    "discard",
    "export",
    "forget_worker",
    "irrecoverable",
    "matches",
    "move",
    "pausable",
    "pause",
    "paused",
    "prunable",
    "prune",
    "prune_all",
    "reap_once",
    "requeue",
    "resolvable_step",
    "resolve_step",
    "resume",
    "run_now",
    "serves",
    "silence",
    "split_patterns",
    "stats",
]

logger = logging.getLogger("django_workqueue.operate")

STATISTICS_RETENTION = timedelta(days=31)
PATIENCE = timedelta(seconds=20)
"""How long one statement of what only reads may take, where nobody waits for a page."""


@dataclass(slots=True)
class Cancellation:
    """What became of a request to cancel jobs."""

    cancelled: list[UUID] = field(default_factory=list)
    """Those that waited. They are over."""
    requested: list[UUID] = field(default_factory=list)
    """Those that run. They have been asked to end."""
    refused: list[Refusal] = field(default_factory=list)


def cancel(
    ids: Iterable[UUID], *, force: bool = False, tenant: Tenants = None, database: str | None = None
) -> Cancellation:
    """
    Cancel jobs: those that wait are over at once, those that run are asked to end.

    Each is a transaction of its own; one that is not live is refused by name and does not stop the others. With
    ``tenant``, another tenant's are not found. With ``force``, a running one that does not heed the request is treated
    as if its time were over: an error is raised in its thread, and when that does not end it, its worker starts over.
    """
    store, done = store_for(database), Cancellation()
    for job_id in ids:
        found = cancel_one(store, job_id, force=force, tenant=tenant)
        if found is None:
            done.refused.append(Refusal(job_id, f"Job {job_id} neither waits nor runs here."))
        elif isinstance(found, FinishedJob):
            done.cancelled.append(job_id)
        else:
            done.requested.append(job_id)
    return done


def resolve_step(
    job_id: UUID,
    step: str,
    *,
    happened: bool,
    outcome: Any = None,
    tenant: Tenants = None,
    database: str | None = None,
) -> None:
    """
    Say of an unknown step whether its effect happened: with ``outcome`` as what it returned, or not at all.

    The job, once requeued, is given the outcome, or does the step anew. With ``tenant``, another tenant's is not found.
    Raises StepNotFoundError, StepInFlightError while the step is being done, InvalidStepError when there is nothing to
    resolve, and PayloadError when JSON cannot express the outcome.
    """
    if outcome is not None and not happened:
        raise InvalidStepError(f"Step {step!r} has no outcome if it did not happen. Leave outcome out.")
    store, settings = store_for(database), get_settings()
    text = encode(plain(outcome), "outcome", settings.max_payload_bytes)
    found = resolvable_step(job_id, step, happened=happened, tenant=tenant, database=database)
    if happened:
        resolved = store.record_step(found.pk, text, retention=settings.step_retention)
    else:
        resolved = store.free_step(found.pk)
    if not resolved:
        raise _done(job_id, step)
    what = "happened" if happened else "did not happen"
    fields = {"job_id": str(job_id), "step": step, "step_key": found.key}
    logger.warning("Step %r of job %s was resolved: it %s.", step, job_id, what, extra=fields)


def resolvable_step(
    job_id: UUID, step: str, *, happened: bool, tenant: Tenants = None, database: str | None = None
) -> Step:
    """Return a step of which this can be said by now, or raise what ``resolve_step`` raises. Nothing is changed."""
    store = store_for(database)
    found = store.steps_of(job_id).filter(name=step).first()
    if found is None or found.tenant not in Scope.of(tenant):
        raise StepNotFoundError(job_id, step)
    if found.state == StepState.BEGUN and (held := store.held_for(job_id, found.lease_id)) is not None:
        raise StepInFlightError(job_id, step, delay=held)
    if found.state == StepState.DONE and (found.outcome or not happened):
        raise _done(job_id, step)
    return found


def _done(job_id: UUID, step: str) -> InvalidStepError:
    return InvalidStepError(
        f"Step {step!r} of job {job_id} is on record as done. A second effect needs another step name."
    )


def prune(*, batch: int = 1000, database: str | None = None) -> Pruned:
    """Delete up to ``batch`` rows of each kind whose time is over. Call it until ``total`` is 0."""
    return store_for(database).prune(batch=batch, step_retention=get_settings().step_retention, **_retentions())


def prune_all(*, batch: int = 1000, database: str | None = None) -> Pruned:
    """Delete all rows whose time is over, ``batch`` of each kind at a time, and return how many they were."""
    done = pruned = prune(batch=batch, database=database)
    # Not until nothing is found: on a busy system a row or two fall due during each round, and it would never end.
    while max(pruned.finished, pruned.dead, pruned.minutes, pruned.workflows, pruned.steps, pruned.folded) >= batch:
        pruned = prune(batch=batch, database=database)
        done += pruned
    return done


def prunable(*, database: str | None = None) -> Pruned:
    """Count what ``prune_all`` would delete by now, each kind up to COUNT_CAP rows."""
    return store_for(database).prunable(cap=COUNT_CAP, **_retentions())


def _retentions() -> dict[str, Any]:
    return {"dead_retention": get_settings().dead_retention, "statistics_retention": STATISTICS_RETENTION}


def reap_once(*, database: str | None = None) -> list[Reclaimed]:
    """Take back the jobs of every lease that has lapsed by now, and return what moved."""
    store, moved = store_for(database), []
    while reclaimed := reap(store):
        moved += reclaimed
    return moved


def stats(*, database: str | None = None) -> list[QueueStats]:
    """
    Return the statistics of every queue, in name order, from bounded reads.

    Raises OperationalError when one of them takes longer than PATIENCE.
    """
    store = store_for(database)
    with store.looking(PATIENCE):
        patterns = [worker.queues for worker in store.live_workers(silence())]
        return store.stats(lambda name: sum(serves(served, name) for served in patterns))


def serves(patterns: str, queue: str) -> bool:
    """Whether a worker with these patterns ("a,b*,!c": exclusions begin with "!") serves ``queue``."""
    wanted, unwanted = split_patterns(patterns.split(","))
    return matches(wanted, queue) and not matches(unwanted, queue)


def split_patterns(patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the patterns that include queues, and, without their "!", those that exclude them."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    return wanted, [pattern[1:] for pattern in patterns if pattern.startswith("!")]


def matches(patterns: Sequence[str], queue: str) -> bool:
    """Whether one of the patterns, in shell style, is the queue's."""
    return any(fnmatch.fnmatchcase(queue, pattern) for pattern in patterns)
