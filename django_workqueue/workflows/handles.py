"""A stored workflow in the hands of whoever asks how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async

from ..domain.encoding import decode
from ..lifecycle import workflow as flowing
from ..models import Workflow, WorkflowMember


@dataclass(frozen=True, slots=True)
class MemberView:
    """One task of a workflow, as it was when it was looked at."""

    id: str
    """The id of its job, also before there is one."""
    task: str
    state: str
    """A word of ``MemberState``."""
    result: Any = None
    """What it returned, once it is done."""


class WorkflowHandle:
    """
    A workflow as it was when it was last looked at: ``refresh`` looks again.

    What reads or writes the database has a twin for async code: ``arefresh``, ``amembers`` and ``acancel``.
    """

    def __init__(self, row: Workflow, database: str | None = None) -> None:
        self._row = row
        self._database = database

    def __repr__(self) -> str:
        return f"<WorkflowHandle {self.id} {self.status}>"

    @property
    def id(self) -> str:
        """The workflow's id."""
        return str(self._row.pk)

    @property
    def status(self) -> str:
        """A word of ``WorkflowState``: running, succeeded, failed or cancelled."""
        return str(self._row.state)

    @property
    def result(self) -> Any:
        """What the whole returned: of a group, a list in the order of its members. Raises ValueError before its end."""
        if self._row.result is None:
            raise ValueError(f"Workflow {self.id} has no result: it is {self.status}. {self.problem}".rstrip())
        return decode(self._row.result, object)

    @property
    def culprit(self) -> str | None:
        """The id of the job that made the workflow fail."""
        return None if self._row.culprit is None else str(self._row.culprit)

    @property
    def problem(self) -> str:
        """One line on why the workflow failed; empty when it did not."""
        return self._row.problem

    @property
    def size(self) -> int:
        """The number of its tasks."""
        return self._row.size

    @property
    def done(self) -> int:
        """How many of its tasks have succeeded."""
        return self._row.done

    @property
    def members(self) -> list[MemberView]:
        """Its tasks in order, read at each call."""
        return [_view(row) for row in flowing.tasks_of(self._row.pk, database=self._database)]

    async def amembers(self) -> list[MemberView]:
        """See members."""
        return await sync_to_async(lambda: self.members)()

    def cancel(self, *, force: bool = False) -> bool:
        """
        End the workflow: nothing of it starts any more, what waits is cancelled, and what runs is asked to end.

        False when it has succeeded already. With ``force``, what runs and does not heed is ended as
        ``operate.cancel`` does.
        """
        done = flowing.cancel(self._row.pk, force=force, database=self._database)
        self.refresh()
        return done

    async def acancel(self, *, force: bool = False) -> bool:
        """See cancel."""
        return await sync_to_async(self.cancel)(force=force)

    def refresh(self) -> None:
        """Look again. Raises WorkflowNotFoundError once its time of retention is over."""
        self._row = flowing.find(self._row.pk, database=self._database)

    async def arefresh(self) -> None:
        """See refresh."""
        await sync_to_async(self.refresh)()


def get_workflow(workflow_id: UUID | str, *, database: str | None = None) -> WorkflowHandle:
    """Return the workflow of this id. Raises WorkflowNotFoundError."""
    return WorkflowHandle(flowing.find(workflow_id, database=database), database)


def _view(row: WorkflowMember) -> MemberView:
    result = None if row.result is None else decode(row.result, object)
    return MemberView(str(row.pk), row.task, str(row.state), result)
