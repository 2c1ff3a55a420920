"""The members of one workflow, as the rules of its graph read and change them: each row is read and written once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef

from ..domain.graphs import direct
from ..domain.states import MemberState
from ..models import Workflow, WorkflowMember
from .enqueue import BATCH


class MemberRows:
    """The members of one locked workflow: those that were looked at, and those that have changed."""

    def __init__(self, alias: str, workflow: Workflow, now: datetime) -> None:
        self._all = WorkflowMember.objects.using(alias).filter(workflow=workflow.pk)
        self._now = now
        self._seen: dict[int, WorkflowMember] = {}
        self._changed: dict[int, WorkflowMember] = {}

    def open(self, ids: Collection[UUID]) -> list[WorkflowMember]:
        """Return the members of these ids that are not done."""
        return self._see(self._all.filter(pk__in=ids, done_at__isnull=True).order_by("position"))

    def at(self, positions: Collection[int]) -> Mapping[int, WorkflowMember]:
        """See Book.at."""
        unseen = [position for position in positions if position not in self._seen]
        if unseen:
            self._see(self._all.filter(position__in=unseen))
        return {position: self._seen[position] for position in positions}

    def inside(self, node: WorkflowMember) -> Sequence[WorkflowMember]:
        """See Book.inside. What is deeper inside is seen by the same look."""
        if node.last > node.position and not all(at in self._seen for at in range(node.position + 1, node.last + 1)):
            self._see(self._all.filter(position__gt=node.position, position__lte=node.last))
        return list(direct(self._seen, node))

    def complete(self, groups: Collection[int]) -> Iterable[int]:
        """See Book.complete."""
        self.save()
        is_open = self._all.filter(parent=OuterRef("position"), done_at__isnull=True)
        complete = self._all.filter(position__in=groups).exclude(Exists(is_open))
        return list(complete.values_list("position", flat=True))

    def results(self, group: WorkflowMember) -> Sequence[str]:
        """See Book.results."""
        direct_ones = self._all.filter(position__gt=group.position, position__lte=group.last, parent=group.position)
        return [result or "null" for result in direct_ones.order_by("position").values_list("result", flat=True)]

    def changed(self, node: WorkflowMember) -> None:
        """See Book.changed."""
        if node.state == MemberState.DONE:
            node.done_at = self._now
        self._changed[node.position] = node

    def end(self, node: WorkflowMember, result: str) -> None:
        """Note a result from which nothing follows."""
        node.state, node.result = MemberState.DONE, result
        self.changed(node)

    def save(self) -> None:
        """Write what has changed."""
        if self._changed:
            self._all.bulk_update(self._changed.values(), ["state", "result", "done_at"], batch_size=BATCH)
            self._changed.clear()

    def _see(self, rows: Iterable[WorkflowMember]) -> list[WorkflowMember]:
        """Remember rows, each once: one that was changed meanwhile is what it was changed to."""
        return [self._seen.setdefault(row.position, row) for row in rows]
