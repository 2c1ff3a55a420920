"""Workflow: store a graph of jobs in one transaction, look at it, and cancel it. What carries it on is in settle."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from ..conf import get_settings
from ..domain.contract import task_enqueued
from ..domain.graphs import PlannedBook, PlannedNode, Progress, spliced
from ..domain.ids import new_id
from ..domain.registry import resolve
from ..domain.scope import Scope, Tenants
from ..domain.states import JobState, MemberKind, MemberState, WorkflowState
from ..domain.trace import captured_trace
from ..exceptions import InvalidJobError, TaskNotRegisteredError, WorkflowNotFoundError
from ..models import Job, Workflow, WorkflowMember
from ..models.base import NAME_LENGTH
from ..store import store_for
from ..store.workflows import end, plan_of
from .cancel import cancel as cancel_one
from .depth import refuse_excess
from .enqueue import JobRequest, build, check_text
from .events import announce, is_listened_to
from .limits import admit_on_commit, keys_of
from .results import of_stored
from .wake import wake

logger = logging.getLogger("django_workqueue.workflow")


class Link(NamedTuple):
    """A task of a workflow as a caller asks for it. ``takes_input`` False ignores the result before it."""

    request: JobRequest
    takes_input: bool = True


def enqueue(
    nodes: Sequence[PlannedNode],
    *,
    title: str = "",
    tenant: str = "",
    retention: timedelta | None = None,
    on_error: Link | None = None,
    database: str | None = None,
) -> Workflow:
    """
    Store the workflow of these numbered nodes, whose tasks have a ``Link`` for payload, and start what can start.

    All is checked before anything is written; a refusal of one task leaves nothing of the others. Raises as
    ``lifecycle.enqueue``, and InvalidJobError for a task that could be suppressed as a duplicate.
    """
    store = store_for(database)
    progress = Progress(PlannedBook(nodes))
    progress.begin(nodes[0])
    given = {node.position: text for node, text in progress.started}
    with store.reachable("enqueue"):
        now = store.now()
    workflow = _workflow(title, tenant, retention, now)
    jobs = _jobs(nodes, given, workflow)
    workflow.size = len(jobs)
    tenants = {job.tenant for job in jobs.values()}
    if on_error is not None:
        callback = _callback(on_error, now)
        workflow.on_error = plan_of(callback, on_error.request.run_after, takes_input=on_error.takes_input)
        tenants.add(callback.tenant)
    _belong(workflow, tenants)
    if progress.result is not None:
        workflow.result = progress.result
        end(workflow, WorkflowState.SUCCEEDED, now)
    members = [_member(workflow.pk, node, jobs.get(node.position), now) for node in nodes]
    started = [_started(jobs[node.position], node, given[node.position], workflow) for node, _ in progress.started]
    refuse_excess(store, started)
    store.insert_workflow(workflow, members, started)
    wake(store, ready_lanes(started))
    admit_on_commit(store, keys_of(started))
    announce_enqueued(started)
    return workflow


def announce_enqueued(jobs: Sequence[Job]) -> None:
    """Send ``task_enqueued`` for members whose turn has come, where somebody listens."""
    if not is_listened_to(task_enqueued):
        return
    for job in jobs:
        try:
            task = resolve(job.task)
        except TaskNotRegisteredError:
            continue
        announce(task_enqueued, task, partial(of_stored, job, task, task.backend, duplicate=False))


def ready_lanes(jobs: Sequence[Job]) -> set[tuple[str, str]]:
    """Return the lanes of those of these jobs that can be claimed."""
    return {(job.queue, job.tenant) for job in jobs if job.state == JobState.READY}


def _workflow(title: str, tenant: str, retention: timedelta | None, now: datetime) -> Workflow:
    check_text("tenant", tenant, NAME_LENGTH, may_be_empty=True)
    kept = get_settings().policy.retention if retention is None else retention
    return Workflow(id=new_id(), title=title[:300], tenant=tenant, retention=kept, enqueued_at=now)


def _belong(workflow: Workflow, tenants: set[str]) -> None:
    """Note whose the workflow is: a hook may have given its jobs to another tenant than the caller named."""
    workflow.tenant = next(iter(tenants)) if len(tenants) == 1 else workflow.tenant
    workflow.is_mixed = bool(tenants - {workflow.tenant})


def _jobs(nodes: Sequence[PlannedNode], started: Collection[int], workflow: Workflow) -> dict[int, Job]:
    """Return the jobs of all tasks, by position. A delay counts from the start: only those that start now have one."""
    tasks = [node for node in nodes if node.kind == MemberKind.TASK]
    # What has no correlation id from around it has one in common all the same.
    common = {} if "correlation_id" in captured_trace() else {"correlation_id": str(workflow.pk)}
    requests = []
    for node in tasks:
        request: JobRequest = node.payload.request
        _refuse_suppressible(request)
        run_after = request.run_after if node.position in started else None
        metadata = {**common, **request.metadata} if request.metadata else common
        requests.append(request._replace(run_after=run_after, metadata=metadata))
    return dict(zip((node.position for node in tasks), build(requests, lambda: workflow.enqueued_at), strict=True))


def _refuse_suppressible(request: JobRequest) -> None:
    """Refuse what could be answered with another job, whose end nobody would tell the workflow."""
    for name in ("dedupe_key", "job_id"):
        if getattr(request, name) is not None:
            raise InvalidJobError(
                f"{request.task} has a {name} and is to be a member of a workflow. A job that was there before would "
                f"take its place: leave the {name} out."
            )


def _member(workflow_id: UUID, node: PlannedNode, job: Job | None, now: datetime) -> WorkflowMember:
    member = WorkflowMember.assemble(
        id=new_id() if job is None else job.pk,
        workflow_id=workflow_id,
        position=node.position,
        parent=node.parent,
        last=node.last,
        kind=str(node.kind),
        state=str(node.state),
    )
    if node.state == MemberState.DONE:
        member.result, member.done_at = node.result, now
    if job is not None:
        member.task = job.task
        if node.state == MemberState.WAITING:
            link: Link = node.payload
            member.plan = plan_of(job, link.request.run_after, takes_input=link.takes_input)
    return member


def _callback(link: Link, now: datetime) -> Job:
    _refuse_suppressible(link.request)
    [job] = build([link.request._replace(run_after=None)], lambda: now)
    return job


def _started(job: Job, node: PlannedNode, given: str | None, workflow: Workflow) -> Job:
    job.workflow = workflow.pk
    link: Link = node.payload
    if given is not None and link.takes_input:
        job.args = spliced(job.args, given)
    return job


def within(scope: Scope, rows: QuerySet[Workflow]) -> QuerySet[Workflow]:
    """Return those of ``rows`` of which all jobs are in ``scope``: the whole tells of each of its members."""
    return scope.apply(rows).filter(is_mixed=False) if scope.is_limited else rows


def find(workflow_id: UUID | str, *, tenant: Tenants = None, database: str | None = None) -> Workflow:
    """Return the workflow of this id as it stands. Raises WorkflowNotFoundError, as ``cancel`` does."""
    store = store_for(database)
    rows = Workflow.objects.using(store.alias).filter(pk=_uuid(workflow_id))
    row = within(Scope.of(tenant), rows).first()
    if row is None:
        raise WorkflowNotFoundError(workflow_id)
    return row


def tasks_of(workflow_id: UUID, *, database: str | None = None) -> list[WorkflowMember]:
    """Return the tasks of a workflow, in order."""
    members = WorkflowMember.objects.using(store_for(database).alias).filter(workflow=workflow_id)
    return list(members.filter(kind=MemberKind.TASK).order_by("position"))


def cancel(
    workflow_id: UUID | str, *, force: bool = False, tenant: Tenants = None, database: str | None = None
) -> bool:
    """
    End a workflow: nothing of it is started any more, what waits is cancelled, and what runs is asked to end.

    What runs may end well all the same, and nothing follows from it. ``force`` is that of ``operate.cancel``. The error
    callback is not called. False when it has succeeded already. Raises WorkflowNotFoundError, with ``tenant`` also for
    one that has jobs of others.
    """
    store = store_for(database)
    row = find(workflow_id, tenant=tenant, database=database)
    live = store.cancel_workflow(row.pk)
    if live is None:
        return False
    # The workflow first: what ends between the two steps finds it cancelled, and starts nothing.
    for job_id in live:
        cancel_one(store, job_id, force=force)
    logger.warning("Workflow %s was cancelled.", row.pk, extra={"workflow": str(row.pk)})
    return True


def _uuid(value: UUID | str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise WorkflowNotFoundError(value) from None
