"""What is paused, and the jobs that are set aside while their task is."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, Q, QuerySet, Value, When

from ..conf import get_settings
from ..domain.limits import LimitedKey
from ..domain.pauses import Pauses, all_paths
from ..domain.states import JobState, PauseKind
from ..models import Job, Pause
from .settle import GivenBack, Settling


class Unparked(NamedTuple):
    """What came of letting parked jobs go: the lanes that have ready work, and the keys that wait for a slot."""

    number: int
    lanes: set[tuple[str, str]]
    keys: set[LimitedKey]


class Pausing(Settling):
    """Pauses are rows, so that they hold for every worker and outlive all of them."""

    def pause(self, kind: PauseKind, name: str, by: str) -> bool:
        """Let no worker begin anything of ``name``. False when it is paused already: the first pause stays."""
        pause = Pause(kind=kind, name=name, paused_by=by, paused_at=self.now())
        with self.transaction():
            Pause.objects.using(self.alias).bulk_create([pause], ignore_conflicts=True)
            stored = Pause.objects.using(self.alias).get(kind=kind, name=name)
        return (stored.paused_at, stored.paused_by) == (pause.paused_at, by)

    def resume(self, kind: PauseKind, name: str) -> bool:
        """End a pause, and return whether there was one. What is parked is let go by ``unpark``."""
        count, _ = Pause.objects.using(self.alias).filter(kind=kind, name=name).delete()
        return bool(count)

    def pauses(self) -> Pauses:
        """Return all that is paused, in one read."""
        names: dict[str, set[str]] = {kind: set() for kind in PauseKind.values}
        for kind, name in Pause.objects.using(self.alias).values_list("kind", "name"):
            names[kind].add(name)
        return Pauses(
            queues=frozenset(names[PauseKind.QUEUE]),
            tenants=frozenset(names[PauseKind.TENANT]),
            tasks=all_paths(names[PauseKind.TASK], get_settings().aliases),
        )

    def park(self, lease_id: int, job_ids: Collection[UUID], *, last: bool) -> GivenBack:
        """Set claimed jobs aside as if they had never been claimed, since their task is paused. See release."""
        with self.transaction():
            held = self._hold(lease_id, job_ids)
            cancelled = self._unclaim(Q(pk__in=held), JobState.PARKED)
            self._close(lease_id, last=last)
        return GivenBack(held, cancelled)

    def parked_tasks(self) -> list[str]:
        """Return the stored paths of the tasks that have parked jobs, in order. One index descent for each."""
        found: list[str] = []
        while task := self._next_parked(found[-1] if found else ""):
            found.append(task)
        return found

    def unpark(self, tasks: Collection[str], *, limit: int = 500) -> Unparked:
        """Let up to ``limit`` parked jobs of these tasks go: ready, or blocked where a concurrency key has its say."""
        parked = self._parked().filter(task__in=tasks).order_by()
        with self.transaction():
            rows = list(self._unheld(parked).values_list("pk", "queue", "tenant", "concurrency_key")[:limit])
            Job.objects.using(self.alias).filter(pk__in=[row[0] for row in rows]).update(state=READY_OR_BLOCKED)
        return Unparked(
            len(rows),
            {(queue, tenant) for _, queue, tenant, key in rows if key is None},
            {(queue, tenant, key) for _, queue, tenant, key in rows if key is not None},
        )

    def _next_parked(self, after: str) -> str | None:
        tasks = self._parked().filter(task__gt=after).order_by("task").values_list("task", flat=True)
        return tasks.first()

    def _parked(self) -> QuerySet[Job]:
        return Job.objects.using(self.alias).parked()


READY_OR_BLOCKED: Any = Case(
    When(concurrency_key__isnull=True, then=Value(JobState.READY.value)), default=Value(JobState.BLOCKED.value)
)
"""The state of a job that might be claimed, if its concurrency key allows."""
