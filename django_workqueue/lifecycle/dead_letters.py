"""Decide about dead letters: back to work, as they are or changed; seen; or gone. Part of ``operate``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import blake2b
from typing import Any
from uuid import UUID

from ..conf import get_settings
from ..domain.context import REPLAY
from ..domain.encoding import encode
from ..domain.ids import new_id
from ..domain.masking import unmasked
from ..domain.registry import check_fit, resolve
from ..domain.scope import Scope, Tenants
from ..domain.states import JobState
from ..domain.steps import idempotency_key
from ..exceptions import LONGEST, DuplicateJobError, InvalidJobError, JobNotFoundError
from ..models import DeadLetter, Job
from ..models.base import NAME_LENGTH
from ..store import Store, store_for
from .enqueue import MAX_ATTEMPTS, check_text, queue_name, whole
from .limits import admit_on_commit, keys_of
from .wake import wake

logger = logging.getLogger("django_workqueue.operate")

MOST_NOTE = 2000
"""Characters of a note."""
MOST_BY = 150
"""Characters of the name of who acknowledged."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job that an operation left as it was, and why."""

    job_id: UUID
    problem: str


@dataclass(slots=True)
class Requeued:
    """What became of a requeue."""

    job_ids: list[UUID] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    replay: UUID = field(default_factory=new_id)
    """What the jobs that came back have in common: it stands in their metadata and in the log."""


def requeue(
    ids: Iterable[UUID],
    *,
    attempts: int | None = None,
    queue: str | None = None,
    spread: timedelta | None = None,
    delay: timedelta | None = None,
    replay: UUID | None = None,
    tenant: Tenants = None,
    database: str | None = None,
) -> Requeued:
    """
    Put dead letters back to ready, each with ``attempts`` further tries (by default its queue's MAX_ATTEMPTS).

    Id, history and keys stay. ``queue`` moves them to another one; ``delay`` makes them due that long from now, and
    ``spread`` each at a moment of its own within that time, drawn from its id. Each is a transaction of its own; one
    that cannot come back is refused by name and does not stop the others. ``replay`` is an id for all of it, by default
    a new one, which each that comes back has in its metadata. With ``tenant``, those of others are not found. Raises
    InvalidJobError when ``attempts`` is not from 1 to 32767, and for what is no name of a queue, no delay and no time
    to spread over.
    """
    changes = check_changes(attempts, queue, spread=spread, delay=delay)
    store, done = store_for(database), Requeued(replay=replay or new_id())
    jobs = []
    for job_id in ids:
        after = (delay or timedelta()) + (spread * _share(job_id) if spread else timedelta())
        try:
            given: dict[str, Any] = {"attempts": attempts, "after": after, "changes": changes, "tenant": tenant}
            job = _requeue_one(store, job_id, replay=done.replay, **given)
        except (JobNotFoundError, DuplicateJobError) as error:
            done.refused.append(Refusal(job_id, str(error)))
            continue
        done.job_ids.append(job_id)
        jobs.append(job)
    _announce(store, jobs)
    return done


def amend(
    job_id: UUID,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    attempts: int | None = None,
    queue: str | None = None,
    delay: timedelta | None = None,
    tenant: Tenants = None,
    database: str | None = None,
) -> None:
    """
    Put one dead letter back with other arguments, checked as at enqueue. Those that are None stay as they are.

    What WORKQUEUE["MASK"] hides stays as it was where "[masked]" stands in its place. Raises JobNotFoundError,
    DuplicateJobError, InvalidJobError, PayloadError, TaskNotRegisteredError, or ArgumentsDoNotFitError when its task
    cannot be called with them.
    """
    changes = check_changes(attempts, queue, delay=delay)
    changes |= other_arguments(job_id, args=args, kwargs=kwargs, tenant=tenant, database=database)
    store, after = store_for(database), delay or timedelta()
    given: dict[str, Any] = {"attempts": attempts, "after": after, "changes": changes, "tenant": tenant}
    _announce(store, [_requeue_one(store, job_id, replay=new_id(), **given)])


def other_arguments(
    job_id: UUID,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    tenant: Tenants = None,
    database: str | None = None,
) -> dict[str, str]:
    """Return the columns of a dead letter with other arguments, or raise what ``amend`` raises. Nothing is changed."""
    most = get_settings().max_payload_bytes
    letter = Scope.of(tenant).apply(DeadLetter.objects.using(store_for(database).alias).filter(pk=job_id)).first()
    if letter is None:
        raise JobNotFoundError(job_id)
    try:
        args = letter.decoded_args if args is None else list(args)
        kwargs = letter.decoded_kwargs if kwargs is None else dict(kwargs)
    except ValueError as error:
        raise InvalidJobError(f"What job {job_id} was given is not JSON. Give both args and kwargs anew.") from error
    args, kwargs = unmasked(letter, args, kwargs)
    check_fit(resolve(letter.task), args, kwargs)
    return {"args": encode(args, "args", most), "kwargs": encode(kwargs, "kwargs", most)}


def check_changes(attempts: int | None, queue: str | None, **spans: timedelta | None) -> dict[str, Any]:
    """Raise InvalidJobError for what no requeued job may have, and return the columns that change."""
    if attempts is not None:
        whole("attempts", attempts, 1, MAX_ATTEMPTS)
    for name, span in spans.items():
        if span is not None and not timedelta() <= span <= LONGEST:
            raise InvalidJobError(f"{name} is {span!r}. Pass a timedelta from zero to a century.")
    if queue is None:
        return {}
    name = queue_name(queue)
    check_text("queue", name, NAME_LENGTH)
    return {"queue": name}


def check_note(by: str, note: str) -> None:
    """Raise InvalidJobError unless ``by`` and ``note`` can be kept with a dead letter."""
    check_text("by", by, MOST_BY)
    if len(note) > MOST_NOTE or "\x00" in note:
        raise InvalidJobError(f"The note has {len(note)} characters. At most {MOST_NOTE} are kept, none of them NUL.")


def acknowledge(
    ids: Iterable[UUID], *, by: str, note: str = "", tenant: Tenants = None, database: str | None = None
) -> list[UUID]:
    """
    Note on dead letters that ``by`` has seen them, and return the ids that were there.

    They stay dead. Raises InvalidJobError for a note of more than MOST_NOTE characters.
    """
    check_note(by, note)
    store, done = store_for(database), []
    for job_id in ids:
        try:
            store.acknowledge(job_id, by=by, note=note, tenant=tenant)
        except JobNotFoundError:
            continue
        done.append(job_id)
    return done


def dead_letters(
    *, tenant: Tenants = None, queue: str | None = None, limit: int = 50, database: str | None = None
) -> list[DeadLetter]:
    """Return up to ``limit`` dead letters, oldest first: of some tenants or of all, of one queue or of all."""
    letters = DeadLetter.objects.using(store_for(database).alias).order_by("died_at", "id")
    letters = letters if queue is None else letters.filter(queue=queue)
    return list(Scope.of(tenant).apply(letters)[:limit])


def discard(ids: Iterable[UUID], *, tenant: Tenants = None, database: str | None = None) -> list[UUID]:
    """Delete dead letters with their failures, and return the ids that were there, with ``tenant`` only its."""
    store, done = store_for(database), []
    for job_id in ids:
        try:
            store.discard(job_id, tenant=tenant)
        except JobNotFoundError:
            continue
        done.append(job_id)
        logger.info("Dead letter %s was discarded.", job_id, extra={"job_id": str(job_id)})
    return done


def _requeue_one(
    store: Store,
    job_id: UUID,
    *,
    attempts: int | None,
    replay: UUID,
    after: timedelta,
    changes: Mapping[str, Any],
    tenant: Tenants,
) -> Job:
    attempts = attempts or _attempts_of(store, job_id, changes.get("queue"))
    notes = {REPLAY: str(replay)}
    job = store.requeue(job_id, attempts=attempts, tenant=tenant, after=after, changes=changes, notes=notes)
    fields = {"job_id": str(job_id), "task": job.task, "idempotency_key": idempotency_key(job.tenant, job_id)}
    fields["replay"] = str(replay)
    logger.info("Job %s of %s was requeued.", job_id, job.task, extra=fields)
    return job


def _attempts_of(store: Store, job_id: UUID, queue: str | None) -> int:
    if queue is None:
        queue = DeadLetter.objects.using(store.alias).filter(pk=job_id).values_list("queue", flat=True).first()
    return get_settings().queue(queue or "").max_attempts


def _share(job_id: UUID) -> float:
    """Return where in a span of time a job has its place, from 0 up to 1: the same whenever it is asked."""
    return int.from_bytes(blake2b(job_id.bytes, digest_size=8).digest()) / 2**64


def _announce(store: Store, jobs: Sequence[Job]) -> None:
    wake(store, {(job.queue, job.tenant) for job in jobs if job.state != JobState.SCHEDULED})
    admit_on_commit(store, keys_of(jobs))
