"""Foresee which dead letters could not come back: whose id or dedupe key is taken. Part of ``operate``; reads only."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from ..domain.scope import Scope, Tenants
from ..domain.states import JobState
from ..exceptions import DuplicateJobError, JobNotFoundError
from ..models import DeadLetter, Job
from ..store import store_for
from .dead_letters import Refusal

Key = tuple[str, str, str]
"""Queue, tenant and dedupe key."""


def irrecoverable(
    ids: Iterable[UUID], *, queue: str | None = None, tenant: Tenants = None, database: str | None = None
) -> list[Refusal]:
    """
    Return what a requeue of ``ids``, into ``queue`` or where they were, would refuse by now, in their order.

    With ``tenant``, those of others are not found. Of two letters with one dedupe key the first one has it.
    """
    ids, store = list(ids), store_for(database)
    now = store.now()
    letters = DeadLetter.objects.using(store.alias).in_bulk(ids)
    found = {pk: letter for pk, letter in letters.items() if letter.tenant in Scope.of(tenant)}
    keys = {pk: key for pk, letter in found.items() if (key := _key(letter, queue, now)) is not None}
    live = set(Job.objects.using(store.alias).filter(pk__in=ids).values_list("pk", flat=True))
    holders = _holders(store.alias, set(keys.values()), now)
    refused = []
    for pk in ids:
        if pk not in found:
            refused.append(Refusal(pk, str(JobNotFoundError(pk))))
        elif holder := pk if pk in live else _take(holders, keys.get(pk), pk):
            refused.append(Refusal(pk, str(DuplicateJobError(pk, holder))))
    return refused


def _key(letter: DeadLetter, queue: str | None, now: datetime) -> Key | None:
    if letter.dedupe_key is None or (letter.dedupe_expires_at is not None and letter.dedupe_expires_at <= now):
        return None
    return (queue or letter.queue, letter.tenant, letter.dedupe_key)


def _holders(alias: str, keys: set[Key], now: datetime) -> dict[Key, UUID]:
    """Return the live jobs that hold these keys."""
    if not keys:
        return {}
    # All three columns, so that the unique index is descended from its first.
    wanted = {f"{name}__in": set(values) for name, values in zip(_COLUMNS, zip(*keys, strict=True), strict=True)}
    jobs = Job.objects.using(alias).filter(**wanted).exclude(dedupe_until_start=True, state=JobState.LEASED)
    jobs = jobs.filter(Q(dedupe_expires_at__isnull=True) | Q(dedupe_expires_at__gt=now))
    return {key: pk for pk, *key_of in jobs.values_list("pk", *_COLUMNS) if (key := tuple(key_of)) in keys}


_COLUMNS = ("queue", "tenant", "dedupe_key")


def _take(holders: dict[Key, UUID], key: Key | None, pk: UUID) -> UUID | None:
    """Return who holds ``key``; where nobody does, ``pk`` holds it from here on."""
    if key is None:
        return None
    holder = holders.setdefault(key, pk)
    return None if holder == pk else holder
