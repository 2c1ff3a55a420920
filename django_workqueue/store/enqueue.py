"""Storing new jobs, in the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import NamedTuple, TypeVar
from uuid import UUID

from django.db import IntegrityError

from ..domain.states import JobState
from ..exceptions import InvalidJobError, WorkQueueError
from ..models import DeadLetter, FinishedJob, Job
from .base import BaseStore

T = TypeVar("T")
Key = tuple[str, str, str | None]
"""A queue, a tenant and a dedupe key."""

# Rows per INSERT: larger statements gain nothing measurable and hold more memory on both sides.
BATCH = 1000
# The holder of a clashing key may end between the insert and the look-up; the key is free then, and is tried again.
_TRIES = 5


class Stored(NamedTuple):
    """The row that holds a job: the one offered, or the one that was there before."""

    job: Job
    duplicate: bool


class Enqueueing(BaseStore):
    """Inserts that never break the caller's transaction by a clash."""

    def insert(self, jobs: Sequence[Job], *, given_ids: frozenset[UUID] = frozenset()) -> list[Stored]:
        """
        Store ``jobs`` on the caller's connection, in its transaction, and answer one Stored for each, in order.

        ``given_ids`` are the ids that callers chose: a live job of that id is answered unchanged, a finished or dead
        one makes room. Raises InvalidJobError for an id that is another tenant's, and QueueUnavailableError when the
        database cannot be reached.
        """
        with self.reachable("enqueue"):
            if given_ids or any(job.dedupe_key is not None for job in jobs):
                return self._insert_or_find(jobs, given_ids)
            self._insert(jobs)
        return list(map(Stored, jobs, repeat(False)))

    def _insert(self, jobs: Sequence[Job]) -> None:
        if len(jobs) == 1:
            jobs[0].save(using=self.alias, force_insert=True)
        else:
            Job.objects.using(self.alias).bulk_create(jobs, batch_size=BATCH)

    def _insert_or_find(self, jobs: Sequence[Job], given_ids: frozenset[UUID]) -> list[Stored]:
        """Insert what does not clash and find the holders of the rest, as one step of the caller's transaction."""
        answers: dict[UUID, Stored] = {}
        with self.transaction():
            self._lock_dead(given_ids)
            found = {job.pk: job for job in self._live(given_ids)}
            answers.update((pk, Stored(job, duplicate=True)) for pk, job in found.items())
            waiting = [job for job in jobs if job.pk not in answers]
            for _ in range(_TRIES):
                if not waiting:
                    break
                waiting = self._insert_once(waiting, answers, given_ids)
            else:
                raise WorkQueueError(f"The dedupe key {waiting[0].dedupe_key!r} kept changing hands. Enqueue again.")
            self._refuse_ids_of_others([job for job in jobs if job.pk in given_ids], answers)
            self._make_room(pk for pk in given_ids if not answers[pk].duplicate)
        return list(_in_order(jobs, answers))

    def _insert_once(self, jobs: Sequence[Job], answers: dict[UUID, Stored], given_ids: frozenset[UUID]) -> list[Job]:
        """Try every job once, note the answers found, and return the jobs that still have none."""
        clashing = [job for job in jobs if job.pk in given_ids and not self._insert_given(job, answers)]
        clashing += self._insert_new([job for job in jobs if job.pk not in given_ids], answers)
        live = {job.pk: job for job in self._live(job.pk for job in clashing)}
        holders = self._unexpired(self._holders(clashing))
        for job in clashing:
            if holder := live.get(job.pk) or holders.get((job.queue, job.tenant, job.dedupe_key)):
                # Of two with one id in this batch, the first has its answer already.
                answers.setdefault(job.pk, Stored(holder, duplicate=True))
        return [job for job in clashing if job.pk not in answers]

    def _insert_given(self, job: Job, answers: dict[UUID, Stored]) -> bool:
        """Insert a job whose id its caller chose: only the insert itself can tell ours from another's of that id."""
        try:
            with self.transaction():
                job.save(using=self.alias, force_insert=True)
        except IntegrityError:
            return False
        answers[job.pk] = Stored(job, duplicate=False)
        return True

    def _insert_new(self, jobs: Sequence[Job], answers: dict[UUID, Stored]) -> list[Job]:
        """Insert jobs of ids that nobody else can have, and return those whose key clashed."""
        # In one order for all callers: two batches with the same keys would wait for each other in a ring.
        ordered = sorted(jobs, key=lambda job: (job.queue, job.tenant, job.dedupe_key or str(job.pk)))
        stored = {job.pk: job for job in self._insert_where_free(ordered)}
        answers.update((pk, Stored(job, duplicate=False)) for pk, job in stored.items())
        return [job for job in jobs if job.pk not in stored]

    def _insert_where_free(self, jobs: Sequence[Job]) -> Iterable[Job]:
        """Store the jobs whose keys are free and return them, with the stamps that the database gave them."""
        Job.objects.using(self.alias).bulk_create(jobs, batch_size=BATCH, ignore_conflicts=True)
        return self._live(job.pk for job in jobs)

    def _live(self, ids: Iterable[UUID]) -> Iterable[Job]:
        for some in batches(ids):
            yield from Job.objects.using(self.alias).filter(pk__in=some)

    def _holders(self, jobs: Sequence[Job]) -> dict[Key, Job]:
        """Return the live jobs that hold the keys of ``jobs``, by (queue, tenant, key)."""
        lanes: dict[tuple[str, str], set[str | None]] = defaultdict(set)
        for job in jobs:
            lanes[job.queue, job.tenant].add(job.dedupe_key)
        holders = {}
        for (queue, tenant), keys in lanes.items():
            lane = Job.objects.using(self.alias).filter(queue=queue, tenant=tenant)
            lane = lane.exclude(dedupe_until_start=True, state=JobState.LEASED)
            for some in batches(keys):
                holders.update({(queue, tenant, job.dedupe_key): job for job in lane.filter(dedupe_key__in=some)})
        return holders

    def _unexpired(self, holders: dict[Key, Job]) -> dict[Key, Job]:
        """Take the keys whose time is over from their holders, and return the others: who asks again, gets them."""
        expiring = {job.pk: job.dedupe_expires_at for job in holders.values() if job.dedupe_expires_at is not None}
        if not expiring:
            return holders
        now = self.now()
        expired = {pk for pk, expires_at in expiring.items() if expires_at <= now}
        # In one order for all callers, as keys are inserted. The second of two finds that the first one did it.
        rows = Job.objects.using(self.alias).filter(pk__in=expired, dedupe_expires_at__lte=now)
        if self.connection.features.has_select_for_update:
            list(rows.order_by("queue", "tenant", "dedupe_key").select_for_update().values_list("pk"))
        rows.update(dedupe_key=None, dedupe_expires_at=None)
        return {key: job for key, job in holders.items() if job.pk not in expired}

    def _lock_dead(self, ids: Iterable[UUID]) -> None:
        """Lock the dead letters of these ids before their jobs, as a requeue does: neither blocks the other then."""
        if self.connection.features.has_select_for_update:
            for some in batches(sorted(ids)):
                letters = DeadLetter.objects.using(self.alias).filter(pk__in=some).order_by("pk")
                list(letters.select_for_update().values_list("pk"))

    def _refuse_ids_of_others(self, jobs: Sequence[Job], answers: Mapping[UUID, Stored]) -> None:
        """Raise InvalidJobError where another tenant has an id: its job is neither told of nor replaced."""
        tenants = {job.pk: job.tenant for job in jobs}
        for model in (FinishedJob, DeadLetter):
            for some in batches(tenants):
                over = model._default_manager.using(self.alias).filter(pk__in=some).values_list("pk", "tenant")
                _refuse_others(over, tenants)
        live = ((job.pk, answers[job.pk].job) for job in jobs)
        _refuse_others(((pk, holder.tenant) for pk, holder in live if holder.pk == pk), tenants)

    def _make_room(self, ids: Iterable[UUID]) -> None:
        """Remove what an earlier life of these ids left behind: a job is in exactly one place. Its failures stay."""
        for some in batches(ids):
            FinishedJob.objects.using(self.alias).filter(pk__in=some).delete()
            DeadLetter.objects.using(self.alias).filter(pk__in=some).delete()


def _refuse_others(found: Iterable[tuple[UUID, str]], tenants: Mapping[UUID, str]) -> None:
    for pk, tenant in found:
        if tenant != tenants[pk]:
            raise InvalidJobError(
                f"The id {pk} is that of another tenant's job. Make ids of what no two tenants have in common."
            )


def stamp(job: Job, now: datetime) -> None:
    """Give a job both stamps, where its caller gave none."""
    # Past the model's descriptors: there may be very many jobs.
    row = job.__dict__
    for column in ("enqueued_at", "ready_at"):
        if not isinstance(row[column], datetime):
            row[column] = now


def batches(values: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Yield the values in lists short enough for one statement: databases bound its parameters."""
    rest = list(values)
    for start in range(0, len(rest), size):
        yield rest[start : start + size]


def _in_order(jobs: Sequence[Job], answers: Mapping[UUID, Stored]) -> Iterator[Stored]:
    """Yield the answer for each job; an id that comes again in the same batch is a duplicate like any other."""
    seen: set[UUID] = set()
    for job in jobs:
        stored = answers[job.pk]
        yield Stored(stored.job, duplicate=stored.duplicate or job.pk in seen)
        seen.add(job.pk)
