"""
Workflows: storing a whole graph, and carrying it on in the transaction that settles one of its members.

Whoever ends members of a workflow holds its row locked. So two that end at the same moment do so one after the other,
the second sees what the first wrote, and what follows is started once. The row is written once for a batch of
settlements, and nothing is counted down: a group is complete when no member of it is open.

Locks are taken in one order everywhere: a lease, then workflows, then jobs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.dateparse import parse_datetime

from ..domain.encoding import encode
from ..domain.graphs import Progress, spliced
from ..domain.outcomes import Settlement, Succeeded
from ..domain.scope import Scope, Tenants
from ..domain.states import JobState, MemberKind, MemberState, WorkflowState
from ..models import DeadLetter, Job, Workflow, WorkflowMember
from .enqueue import BATCH, Enqueueing, stamp
from .members import MemberRows

LOST = (MemberState.DEAD, MemberState.CANCELLED)
"""The states of members without which their workflow cannot end."""
_GIVEN_LATER = frozenset({"id", "workflow", "state", "ready_at", "enqueued_at"})


class Linked(NamedTuple):
    """What settling members of workflows did: the ids that were settled, and the jobs whose turn has come."""

    settled: set[UUID]
    started: list[Job]


class Flowing(Enqueueing):
    """Workflows in the ORM. Settling and operating call the steps below inside their own transactions."""

    def insert_workflow(self, workflow: Workflow, members: Sequence[WorkflowMember], jobs: Sequence[Job]) -> None:
        """Store a workflow with all its members and the jobs that can start, in the caller's transaction or in one."""
        for job in jobs:
            stamp(job, workflow.enqueued_at)
        with self.reachable("enqueue"), self.transaction():
            workflow.save(using=self.alias, force_insert=True)
            self._insert_members(members)
            self._insert(jobs)

    def _insert_members(self, members: Sequence[WorkflowMember]) -> None:
        WorkflowMember.objects.using(self.alias).bulk_create(members, batch_size=BATCH)

    def lock_workflows(self, ids: Iterable[UUID | None]) -> dict[UUID, Workflow]:
        """Lock the rows of these workflows until the end of the transaction, in one order for all, and return them."""
        wanted = {pk for pk in ids if pk is not None}
        if not wanted:
            return {}
        rows = Workflow.objects.using(self.alias).filter(pk__in=wanted).order_by("pk")
        if self.connection.features.has_select_for_update:
            rows = rows.select_for_update()
        return {row.pk: row for row in rows}

    # -- carrying on ---------------------------------------------------------------------------------------------

    def carry_on(self, workflows: Mapping[UUID, Workflow], done: Iterable[Settlement]) -> list[Job]:
        """
        Note the results of these members of locked workflows, enqueue the jobs whose turn has come and return them.

        A member that is done already is passed over, so that nothing is started twice.
        """
        results: dict[UUID, dict[UUID, str]] = defaultdict(dict)
        for each in done:
            workflow = workflows.get(each.job.workflow) if each.job.workflow else None
            if workflow is not None and isinstance(each.outcome, Succeeded):
                results[workflow.pk][each.job.id] = each.outcome.result
        now = self.now()
        started = [job for pk, ended in results.items() for job in self._end_members(workflows[pk], ended, now)]
        if started:
            self._insert(started)
        return started

    def _end_members(self, workflow: Workflow, results: Mapping[UUID, str], now: datetime) -> list[Job]:
        rows = MemberRows(self.alias, workflow, now)
        ended = [(member, results[member.pk]) for member in rows.open(results)]
        progress = Progress(rows)
        if workflow.state == WorkflowState.CANCELLED:
            for member, result in ended:
                rows.end(member, result)
        else:
            progress.end(ended)
        rows.save()
        self._note(workflow, len(ended), progress.result, now)
        return [start(member, given, now) for member, given in progress.started]

    def _note(self, workflow: Workflow, done: int, result: str | None, now: datetime) -> None:
        """Add to what a workflow has done, and end it when it has a result."""
        workflow.done += done
        fields = ["done"]
        if result is not None:
            workflow.result = result
            end(workflow, WorkflowState.SUCCEEDED, now)
            fields += ["result", *ENDING]
        if done:
            workflow.save(using=self.alias, update_fields=fields)

    # -- failing and mending -------------------------------------------------------------------------------------

    def lose_member(self, job: Job, state: MemberState, problem: str) -> None:
        """Note that the job of a member died or was cancelled: its workflow fails, and calls back whoever asked."""
        workflow = self.lock_workflows([job.workflow]).get(job.workflow) if job.workflow else None
        if workflow is None:
            return
        WorkflowMember.objects.using(self.alias).filter(pk=job.pk, done_at__isnull=True).update(state=state)
        if workflow.state == WorkflowState.RUNNING:
            self._fail_workflow(workflow, job, problem)

    def _fail_workflow(self, workflow: Workflow, job: Job, problem: str) -> None:
        now = self.now()
        workflow.culprit, workflow.problem = job.pk, problem
        end(workflow, WorkflowState.FAILED, now)
        fields = ["culprit", "problem", *ENDING]
        if workflow.on_error:
            callback = self._call_back(workflow, job, now)
            workflow.on_error, workflow.on_error_job = "", callback.pk
            fields += ["on_error", "on_error_job"]
        workflow.save(using=self.alias, update_fields=fields)

    def _call_back(self, workflow: Workflow, job: Job, now: datetime) -> Job:
        facts = {"workflow": str(workflow.pk), "job": str(job.pk), "task": job.task, "problem": workflow.problem}
        callback = _made(workflow.on_error, encode(facts, "the facts", len(workflow.problem) * 8 + 10_000), now)
        self._insert([callback])
        lanes = {(callback.queue, callback.tenant)}
        self.on_commit(lambda: self.notify(lanes))
        return callback

    def waiting_member(self, job_id: UUID, tenant: Tenants = None) -> Job | None:
        """
        Return the job that a member is planned to be, not stored; None when its turn has come.

        Its workflow is locked until the end of the transaction, so that the turn does not come meanwhile.
        """
        members = WorkflowMember.objects.using(self.alias).filter(pk=job_id, state=MemberState.WAITING)
        self.lock_workflows(members.values_list("workflow", flat=True))
        member = members.filter(kind=MemberKind.TASK).first()
        job = None if member is None else start(member, None, self.now())
        return job if job is not None and job.tenant in Scope.of(tenant) else None

    def planned(self, job_id: UUID) -> tuple[Job, Workflow, str] | None:
        """Return the planned job of a member that has none yet, its workflow and its state; None when there is none."""
        unstarted = (MemberState.WAITING, MemberState.CANCELLED)
        members = WorkflowMember.objects.using(self.alias).filter(pk=job_id, kind=MemberKind.TASK, plan__isnull=False)
        member = members.filter(state__in=unstarted).select_related("workflow").first()
        if member is None:
            return None
        return start(member, None, member.workflow.enqueued_at), member.workflow, member.state

    def revive_member(self, job: Job) -> None:
        """Note that the job of a member is live again: unless another one is lost, its workflow goes on."""
        workflow = self.lock_workflows([job.workflow]).get(job.workflow) if job.workflow else None
        if workflow is None:
            return
        members = WorkflowMember.objects.using(self.alias).filter(workflow=workflow.pk)
        members.filter(pk=job.pk, done_at__isnull=True).update(state=MemberState.ACTIVE)
        if workflow.state != WorkflowState.FAILED:
            return
        lost = members.filter(state__in=LOST).order_by("position").first()
        if lost is None:
            workflow.state, workflow.culprit, workflow.problem = WorkflowState.RUNNING, None, ""
            workflow.ended_at = workflow.expires_at = None
        else:
            workflow.culprit, workflow.problem = lost.pk, self._problem_of(lost)
        workflow.save(using=self.alias, update_fields=["culprit", "problem", *ENDING])

    def _problem_of(self, member: WorkflowMember) -> str:
        letter = DeadLetter.objects.using(self.alias).filter(pk=member.pk).first()
        return (letter and letter.veiled_error) or f"It is {member.state}."

    def cancel_workflow(self, workflow_id: UUID) -> list[UUID] | None:
        """
        End a workflow that has not succeeded: nothing of it is started any more.

        Returns the ids of its jobs that are still live, to be cancelled as such; None when there is nothing to cancel.
        """
        with self.transaction():
            workflow = self.lock_workflows([workflow_id]).get(workflow_id)
            if workflow is None or workflow.state == WorkflowState.SUCCEEDED:
                return None
            members = WorkflowMember.objects.using(self.alias).filter(workflow=workflow_id)
            members.filter(state=MemberState.WAITING).update(state=MemberState.CANCELLED)
            if workflow.state != WorkflowState.CANCELLED:
                end(workflow, WorkflowState.CANCELLED, self.now())
                workflow.save(using=self.alias, update_fields=ENDING)
            live = members.filter(kind=MemberKind.TASK, state=MemberState.ACTIVE, done_at__isnull=True)
            return list(live.order_by("position").values_list("pk", flat=True))

    # -- cleaning ------------------------------------------------------------------------------------------------

    def prune_workflows(self, batch: int) -> int:
        """
        Delete workflows whose time is over until ``batch`` of their rows are gone, and return how many rows that was.

        Each goes whole. One that can still be mended is looked at again after an hour.
        """
        with self.transaction():
            rows = self._unheld(self.old_workflows()).values_list("pk", "size")[:batch]
            found = list(_within(rows, batch))
            mendable = self._mendable(found)
            Workflow.objects.using(self.alias).filter(pk__in=mendable).update(
                expires_at=self.now() + timedelta(hours=1)
            )
            over = [pk for pk in found if pk not in mendable]
            members = WorkflowMember.objects.using(self.alias).filter(workflow__in=over).delete()[0]
            return members + Workflow.objects.using(self.alias).filter(pk__in=over).delete()[0]

    def old_workflows(self) -> QuerySet[Workflow]:
        """Return the workflows whose time is over."""
        return Workflow.objects.using(self.alias).filter(expires_at__lte=self.clock()).order_by("expires_at")

    def _mendable(self, ids: Sequence[UUID]) -> set[UUID]:
        """Return those of these workflows of which a job is live or a dead letter: it may yet ask for what is kept."""
        active = WorkflowMember.objects.using(self.alias).filter(
            workflow__in=ids, done_at__isnull=True, kind=MemberKind.TASK
        )
        jobs, letters = Job.objects.using(self.alias), DeadLetter.objects.using(self.alias)
        alive = Exists(jobs.filter(pk=OuterRef("pk"))) | Exists(letters.filter(pk=OuterRef("pk")))
        return set(active.filter(alive).values_list("workflow", flat=True)) if ids else set()


ENDING = ("state", "ended_at", "expires_at")


def end(workflow: Workflow, state: WorkflowState, now: datetime) -> None:
    """Give a workflow its ending, from which its retention counts."""
    workflow.state, workflow.ended_at, workflow.expires_at = state, now, now + workflow.retention


def _within(rows: Iterable[tuple[UUID, int]], most: int) -> Iterator[UUID]:
    """Yield ids until the sizes that come with them add up to ``most``."""
    for pk, size in rows:
        if most <= 0:
            return
        most -= size
        yield pk


def plan_of(job: Job, run_after: datetime | timedelta | None, *, takes_input: bool) -> str:
    """Return the plan of a job that was built and is to be enqueued later."""
    usual = Job.assemble().__dict__
    columns = {
        name: value
        for name, value in job.__dict__.items()
        if name not in _GIVEN_LATER and not name.startswith("_") and value != usual[name]
    }
    plan: dict[str, Any] = {"id": str(job.pk), "columns": columns, "takes_input": takes_input}
    if run_after is not None:
        plan["run_after"] = run_after.total_seconds() if isinstance(run_after, timedelta) else run_after.isoformat()
    return json.dumps(plan, ensure_ascii=False, separators=(",", ":"))


def start(member: WorkflowMember, given: str | None, now: datetime) -> Job:
    """Return the job of a member whose turn has come, stamped and not stored."""
    job = _made(member.plan or "{}", given, now)
    job.workflow = member.workflow_id
    return job


def _made(plan: str, given: str | None, now: datetime) -> Job:
    read: dict[str, Any] = json.loads(plan)
    job = Job.assemble(id=UUID(read["id"]), **read["columns"])
    if given is not None and read["takes_input"]:
        job.args = spliced(job.args, given)
    if job.concurrency_key is not None:
        job.state = JobState.BLOCKED
    due = _due(read.get("run_after"), now)
    if due is not None and due > now:
        job.ready_at, job.state = due, JobState.SCHEDULED
    stamp(job, now)
    return job


def _due(run_after: float | str | None, now: datetime) -> datetime | None:
    if run_after is None:
        return None
    return parse_datetime(run_after) if isinstance(run_after, str) else now + timedelta(seconds=run_after)
