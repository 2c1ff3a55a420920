"""Workflows: what follows from a member's end is stored with that end, and once."""

from __future__ import annotations

from ...domain.graphs import PlannedBook, Progress, Shape, number
from ...domain.ids import new_id
from ...domain.outcomes import ClaimedJob, Settlement, Succeeded
from ...domain.policies import BackoffPolicy
from ...domain.states import MemberKind, MemberState, WorkflowState
from ...models import Job, Workflow, WorkflowMember
from ...store.workflows import Linked, plan_of
from .base import DAY, QUEUE, ConformanceBase

TASK = Shape(MemberKind.TASK)
CHAIN = Shape(MemberKind.CHAIN, (TASK, TASK))
CHORD = Shape(MemberKind.CHAIN, (Shape(MemberKind.GROUP, (TASK, TASK)), TASK))


class FlowingConformance(ConformanceBase):
    """Guarantees of ``insert_workflow`` and ``complete_members``, and of endings and requeues of members."""

    def test_end_of_a_link_stores_the_next_with_the_result_in_front(self) -> None:
        """One transaction: there is no moment at which neither is there."""
        workflow = self._store_workflow(CHAIN)
        job = self.claim_one()

        _, started = self._settle(job, result='{"sum":3}')

        assert [each.pk for each in started] == [self._member(workflow, 2).pk]
        assert self.live(started[0].pk).decoded_args == [{"sum": 3}, "own"]
        assert self.claim_one().workflow == workflow.pk

    def test_refused_report_starts_nothing(self) -> None:
        """Who has lost the lease cannot carry a workflow on."""
        self._store_workflow(CHAIN)
        late = self.claim_one()
        self.lapse(late)

        assert self._settle(late) == (set(), [])
        assert self.places(late.id) == ["live"]

    def test_barrier_opens_with_its_last_member(self) -> None:
        """Not before, and with the results in order, whichever came first."""
        self._store_workflow(CHORD)
        first, second = self.claim_one(), self.claim_one()

        assert self._settle(second, result='"b"').started == []
        [body] = self._settle(first, result='"a"').started

        assert body.decoded_args == [["a", "b"], "own"]

    def test_members_that_end_together_start_the_body_once(self) -> None:
        """A batch of one lease is settled as one."""
        self._store_workflow(CHORD)
        both = self.claim(limit=2)

        assert len(self._settle(*both).started) == 1

    def test_workflow_ends_with_its_root(self) -> None:
        """Its result is that of the last link, and its retention counts from then."""
        workflow = self._store_workflow(CHAIN)
        self._settle(self.claim_one())
        self._settle(self.claim_one(), result="7")

        workflow.refresh_from_db()
        assert (workflow.state, workflow.result, workflow.done) == (WorkflowState.SUCCEEDED, "7", 2)
        assert workflow.ended_at is not None
        assert workflow.expires_at == workflow.ended_at + DAY

    def test_death_of_a_member_fails_its_workflow_and_requeueing_it_mends_that(self) -> None:
        """The dead letter and the failure are stored together, and go together."""
        workflow = self._store_workflow(CHAIN)
        job = self.claim_one()
        self.bury(job)

        workflow.refresh_from_db()
        assert (workflow.state, workflow.culprit) == (WorkflowState.FAILED, job.id)
        assert self._member(workflow, 1).state == MemberState.DEAD

        self.store.requeue(job.id, attempts=1)
        workflow.refresh_from_db()
        assert (workflow.state, workflow.culprit) == (WorkflowState.RUNNING, None)
        assert len(self._settle(self.claim_one()).started) == 1

    def test_cancelled_workflow_starts_nothing_more(self) -> None:
        """What runs may end; its result is noted, and that is all."""
        workflow = self._store_workflow(CHAIN)
        job = self.claim_one()

        assert self.store.cancel_workflow(workflow.pk) == [job.id]
        assert self._settle(job, result="5").started == []

        assert [self._member(workflow, place).state for place in (1, 2)] == [MemberState.DONE, MemberState.CANCELLED]

    # -- steps ---------------------------------------------------------------------------------------------------

    def _store_workflow(self, shape: Shape) -> Workflow:
        """Store a workflow of this shape, as an enqueue does."""
        nodes = number(shape)
        progress = Progress(PlannedBook(nodes))
        progress.begin(nodes[0])
        now = self.store.now()
        workflow = Workflow(id=new_id(), size=len(nodes), retention=DAY, enqueued_at=now)
        jobs = {node.position: self._planned(workflow) for node in nodes if node.kind == MemberKind.TASK}
        members = [
            WorkflowMember(
                id=jobs[node.position].pk if node.position in jobs else new_id(),
                workflow=workflow,
                position=node.position,
                parent=node.parent,
                last=node.last,
                kind=str(node.kind),
                state=str(node.state),
                plan=plan_of(jobs[node.position], None, takes_input=True) if node.position in jobs else None,
            )
            for node in nodes
        ]
        self.store.insert_workflow(workflow, members, [jobs[node.position] for node, _ in progress.started])
        return workflow

    def _planned(self, workflow: Workflow) -> Job:
        return Job.assemble(
            id=new_id(), queue=QUEUE, task="conformance.tasks.work", args='["own"]', workflow=workflow.pk
        )

    def _member(self, workflow: Workflow, position: int) -> WorkflowMember:
        return WorkflowMember.objects.using(self.store.alias).get(workflow=workflow.pk, position=position)

    def _settle(self, *jobs: ClaimedJob, result: str = "null") -> Linked:
        done = [Settlement(job, Succeeded(result, 0.25), BackoffPolicy(), DAY) for job in jobs]
        return self.store.complete_members(jobs[0].lease_id, done, worker="worker-1", last=True)
