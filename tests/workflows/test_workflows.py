"""What chains, groups and chords promise whoever enqueues them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction
from django.test import override_settings

from django_workqueue import (
    ArgumentsDoNotFitError,
    InvalidJobError,
    WorkflowNotFoundError,
    chain,
    chord,
    get_workflow,
    group,
)
from django_workqueue.exceptions import QueueFullError
from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, FinishedJob, Job, Workflow, WorkflowMember
from django_workqueue.testing import advance, drain
from tests.claims import claim_one, succeeded

from . import sample_tasks as tasks

pytestmark = pytest.mark.django_db


def run(graph, **options):
    """Enqueue a graph, run everything, and return its handle as it is then."""
    handle = graph.enqueue()
    drain(**options)
    handle.refresh()
    return handle


def test_each_link_is_given_the_result_of_the_one_before():
    """A chain is a pipeline: the result comes first, then the link's own arguments."""
    handle = run(chain(tasks.say.signature("a"), tasks.join.signature("b"), tasks.join.signature("c")))

    assert (handle.status, handle.result) == ("succeeded", "a-b-c")
    assert [member.result for member in handle.members] == [["a"], "a-b", "a-b-c"]
    assert (handle.size, handle.done) == (3, 3)


def test_link_that_ignores_the_previous_has_its_own_arguments_alone():
    """Steps that only must come after each other need no parameter for a result."""
    handle = run(chain(tasks.say.signature("a"), tasks.say.signature("b").ignoring_previous()))

    assert handle.result == ["b"]


def test_next_link_does_not_exist_before_its_turn():
    """Nothing that claims, counts or lists jobs ever steps over work that cannot run yet."""
    handle = chain(tasks.say.signature("a"), tasks.join.signature("b")).enqueue()

    assert Job.objects.count() == 1
    drain(max_jobs=1)
    assert Job.objects.get().decoded_args == [["a"], "b"]
    assert [member.state for member in handle.members] == ["done", "active"]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_body_of_a_chord_is_given_a_list(count):
    """A list that is built at run time may be short: of none and of one it is still a list (celery/celery#4333)."""
    handle = run(chord([tasks.forget.signature(number) for number in range(count)], tasks.say.signature("body")))

    assert handle.result == [list(range(count)), "body"]


def test_results_come_in_the_order_of_members():
    """Whichever ends first: the list follows the declaration."""
    members = [tasks.forget.signature(number).using(priority=number) for number in range(5)]

    handle = run(group(members))

    assert handle.result == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "graph",
    [group(), group(group(), group()), chain(group()), chain(group(), group())],
    ids=["void", "two", "in", "row"],
)
def test_group_without_members_is_complete_at_once(graph):
    """Nothing waits for ever for the end of nothing (celery/celery#3756)."""
    handle = graph.enqueue()

    assert handle.status == "succeeded"
    assert not Job.objects.exists()


def test_graphs_can_be_nested():
    """Chains in groups in chains: each has one result, and stands where a task could."""
    inner = chord(
        [tasks.join.signature("x"), chain(tasks.join.signature("y"), tasks.join.signature("z"))], tasks.join.signature()
    )

    handle = run(chain(tasks.forget.signature("0"), group(tasks.join.signature("1"), inner), tasks.say.signature()))

    assert handle.result == [["0-1", "0-x-0-y-z"]]


def test_input_of_a_group_goes_to_each_member():
    """A fan-out in the middle of a chain starts from the same result everywhere."""
    handle = run(
        chain(
            tasks.forget.signature("a"),
            group(tasks.join.signature("1"), chain(tasks.join.signature("2"), tasks.join.signature("3")), group()),
            tasks.say.signature("end"),
        )
    )

    assert handle.result == [["a-1", "a-2-3", []], "end"]


def test_workflow_is_stored_in_the_callers_transaction():
    """What the caller rolls back was never enqueued."""
    with transaction.atomic():
        chord([tasks.say.signature()] * 3, tasks.say.signature()).enqueue()
        transaction.set_rollback(True)

    assert not Workflow.objects.exists()
    assert not WorkflowMember.objects.exists()
    assert not Job.objects.exists()


def test_refusal_of_one_member_leaves_nothing():
    """All is checked before anything is written, and the refusal names what is wrong (seomoz/plines#44)."""
    members = [tasks.say.signature(number) for number in range(20)]
    members[15] = tasks.say.signature(object())

    with pytest.raises(ValueError, match=r"args\[0\] is of type object"):
        chord(members, tasks.join.signature()).enqueue()

    assert not Workflow.objects.exists()
    assert not Job.objects.exists()


def test_arguments_are_checked_with_the_result_in_front():
    """A body without a parameter for the results is refused at the door, not in a worker hours later."""
    with pytest.raises(ArgumentsDoNotFitError, match="too many positional arguments"):
        chord([tasks.say.signature()], tasks.no_input.signature()).enqueue()

    assert run(chord([], tasks.no_input.signature().ignoring_previous())).result == "ran"


def test_member_with_a_dedupe_key_is_refused():
    """A job that was there before would take its place, and nobody would tell the workflow of its end."""
    with pytest.raises(InvalidJobError, match="dedupe_key"):
        chain(tasks.keyed.signature()).enqueue()
    with pytest.raises(InvalidJobError, match="dedupe_key"):
        group(tasks.say.signature().using(dedupe_key="a")).enqueue()


def test_key_that_depends_on_a_result_is_refused():
    """Nobody knows it when the workflow is enqueued, and it would be worked out from the wrong arguments."""
    with pytest.raises(InvalidJobError, match="concurrency_key"):
        chain(tasks.say.signature("a"), tasks.limited.signature()).enqueue()

    told = tasks.limited.signature().using(concurrency_key="printer", concurrency_limit=1)
    assert run(chain(tasks.say.signature("a"), told)).result == "limited ['a']"
    assert run(chain(tasks.limited.signature("a"))).result == "limited a"


@override_settings(WORKQUEUE={"TENANT_DEPTH": 3})
def test_tenant_with_a_full_queue_starts_no_workflow():
    """What can start at once is what counts; what follows was accepted with it."""
    with pytest.raises(QueueFullError):
        group(tasks.say.signature() for _ in range(4)).enqueue()
    assert not Workflow.objects.exists()

    assert run(chain(*[tasks.say.signature()] * 6)).status == "succeeded"


def test_chain_without_links_is_refused():
    """It could have no result."""
    with pytest.raises(InvalidJobError, match="no links"):
        chain().enqueue()


def test_graph_that_is_too_deep_is_refused():
    """The refusal names the bound; nothing overflows."""
    graph = tasks.say.signature()
    for _ in range(3000):
        graph = chain(graph)

    with pytest.raises(InvalidJobError, match="20 levels"):
        graph.enqueue()


def test_graph_that_is_too_large_is_refused():
    """The refusal names the bound."""
    with pytest.raises(InvalidJobError, match="10,000 members"):
        group(tasks.say.signature() for _ in range(10_001)).enqueue()


def test_what_is_no_signature_is_refused():
    """A task that was called by mistake is found out at once."""
    with pytest.raises(InvalidJobError, match="signature"):
        chain(tasks.say)


def test_tenant_priority_and_metadata_travel_along():
    """A link that says nothing of its own has what the link before had."""
    first = tasks.describe.signature().using(tenant="acme", priority=7, metadata={"order": 3})
    handle = chain(
        first, group(tasks.describe.signature(), tasks.describe.signature().using(tenant="globex"))
    ).enqueue()
    drain(max_jobs=1)

    live = Job.objects.order_by("id").values_list("tenant", "priority")
    assert list(live) == [("acme", 7), ("globex", 7)]
    drain()
    handle.refresh()
    assert [each["metadata"]["order"] for each in handle.result] == [3, 3]


def test_members_share_one_correlation_id():
    """All that follows from one enqueue can be found together (each link's own would tell nothing)."""
    handle = run(chain(tasks.describe.signature(), tasks.describe.signature()))

    assert handle.result["metadata"]["correlation_id"] == handle.id


def test_delay_of_a_link_counts_from_its_start():
    """A link that is to wait an hour waits an hour after the one before, however long that took."""
    handle = chain(tasks.say.signature("a"), tasks.join.signature("b").using(run_after=timedelta(hours=1))).enqueue()
    drain()

    assert Job.objects.get().state == "scheduled"
    advance(3600)
    drain()
    handle.refresh()
    assert handle.result == "a-b"


def test_members_of_which_nothing_is_kept_deliver_their_results():
    """Retention is about looking back; a result that is still needed is kept (by the workflow)."""
    handle = run(chain(tasks.forget.signature("a"), tasks.forget.signature()))

    assert handle.result == "a"
    assert not FinishedJob.objects.exists()


def test_coroutines_are_members_like_others():
    """Where a task runs is its own affair."""
    assert run(chain(tasks.say_async.signature("a"), tasks.join.signature("b"))).result == "a-b"


def test_result_before_the_end_is_refused():
    """It would be taken for the real one."""
    handle = chain(tasks.say.signature()).enqueue()

    with pytest.raises(ValueError, match="running"):
        handle.result  # noqa: B018


def test_workflow_is_found_by_its_id():
    """A later request asks how far it is."""
    handle = chain(tasks.say.signature()).enqueue()

    assert get_workflow(handle.id).status == "running"
    for missing in ("nonsense", "0" * 32):
        with pytest.raises(WorkflowNotFoundError):
            get_workflow(missing)


# -- failing -----------------------------------------------------------------------------------------------------


def test_dead_member_fails_its_workflow_and_the_body_does_not_run():
    """The workflow names who is to blame and why (celery/celery#6220)."""
    handle = run(
        chord(
            [tasks.say.signature(), chain(tasks.fail.signature(), tasks.say.signature())], tasks.say.signature("body")
        ),
        raise_errors=False,
    )

    assert handle.status == "failed"
    assert handle.culprit == str(DeadLetter.objects.get().pk)
    assert handle.problem == "ValueError: no paper"
    assert [member.state for member in handle.members] == ["done", "dead", "waiting", "waiting"]
    assert not Job.objects.exists()


def test_error_callback_runs_once():
    """However many members die, and however often it fails again (celery/celery#3581)."""
    handle = run(
        group(tasks.fail.signature(), tasks.fail.signature()).using(on_error=tasks.say.signature("sorry")),
        raise_errors=False,
    )

    [said] = FinishedJob.objects.all()
    assert said.decoded_args == [
        {
            "workflow": handle.id,
            "job": handle.culprit,
            "task": tasks.fail.module_path,
            "problem": "ValueError: no paper",
        },
        "sorry",
    ]
    operate.requeue([letter.pk for letter in DeadLetter.objects.all()], attempts=1)
    drain(raise_errors=False)
    assert FinishedJob.objects.count() == 1


def test_requeueing_the_dead_member_lets_the_workflow_finish():
    """Mending the culprit is enough: its result goes where it was awaited."""
    handle = run(
        chord([tasks.say.signature(1), tasks.fail_unless_told.signature()], tasks.say.signature("body")),
        raise_errors=False,
    )
    assert handle.status == "failed"

    operate.requeue([handle.culprit])
    handle.refresh()
    assert (handle.status, handle.culprit, handle.problem) == ("running", None, "")
    drain()

    handle.refresh()
    assert handle.result == [[[1], "mended"], "body"]


def test_workflow_stays_failed_while_another_member_is_dead():
    """It names the one that is still to be mended."""
    handle = run(group(tasks.fail_unless_told.signature(), tasks.fail_unless_told.signature()), raise_errors=False)
    first, second = (member.id for member in handle.members)

    operate.requeue([handle.culprit])
    drain()

    handle.refresh()
    assert (handle.status, handle.culprit) == ("failed", second)
    assert handle.problem == "ValueError: not yet"
    operate.requeue([second])
    drain()
    handle.refresh()
    assert handle.result == ["mended", "mended"]
    assert first != second


def test_discarding_the_dead_member_leaves_the_workflow_failed():
    """Nobody can make up for a result that was thrown away."""
    handle = run(chain(tasks.fail.signature(), tasks.say.signature()), raise_errors=False)

    operate.discard([handle.culprit])

    handle.refresh()
    assert handle.status == "failed"


# -- cancelling --------------------------------------------------------------------------------------------------


def test_cancelled_workflow_ends_at_once():
    """What waits is over, in the queue and in the graph, and nobody is called back: nothing has failed."""
    graph = chain(tasks.say.signature(), group(tasks.say.signature(), tasks.say.signature()), tasks.say.signature())
    handle = graph.using(on_error=tasks.say.signature()).enqueue()
    drain(max_jobs=1)

    assert handle.cancel()

    assert handle.status == "cancelled"
    assert [member.state for member in handle.members] == ["done", "cancelled", "cancelled", "cancelled"]
    assert not Job.objects.exists()
    assert sorted(FinishedJob.objects.values_list("outcome", flat=True)) == ["cancelled", "cancelled", "succeeded"]


def test_cancelling_again_changes_nothing():
    """Whoever clicks twice gets the same answer; what has succeeded stays so."""
    handle = chain(tasks.say.signature()).enqueue()
    assert handle.cancel()
    assert handle.cancel()
    done = run(chain(tasks.say.signature()))

    assert not done.cancel()
    assert (handle.status, done.status) == ("cancelled", "succeeded")


def test_member_that_runs_while_its_workflow_is_cancelled_starts_nothing(store):
    """It may end well: its result is noted, and nothing follows from it."""
    handle = chain(tasks.say.signature(), tasks.say.signature()).enqueue()
    job = claim_one(store)
    handle.cancel()

    _, started = store.complete_members(job.lease_id, [succeeded(job, "3")], worker="w", last=True)

    handle.refresh()
    assert (started, handle.status) == ([], "cancelled")
    assert [(member.state, member.result) for member in handle.members] == [("done", 3), ("cancelled", None)]


def test_cancelled_member_fails_its_workflow():
    """Its followers wait for nothing any more, and the workflow says for want of whom (ingadhoc/miscellaneous#438)."""
    handle = chain(*[tasks.say.signature(number) for number in range(5)]).enqueue()
    second = handle.members[1].id

    done = operate.cancel([UUID(second)])
    drain()

    handle.refresh()
    assert done.cancelled == [UUID(second)]
    assert (handle.status, handle.culprit, handle.problem) == ("failed", second, "It was cancelled.")
    assert [member.state for member in handle.members] == ["done", "cancelled", "waiting", "waiting", "waiting"]


def test_ready_member_can_be_cancelled_like_any_job():
    """And is told from one whose turn has not come by nothing."""
    handle = group(tasks.say.signature(), tasks.say.signature()).enqueue()
    first = UUID(handle.members[0].id)

    operate.cancel([first])

    handle.refresh()
    assert (handle.status, handle.culprit) == ("failed", str(first))


def test_other_tenants_do_not_cancel_a_waiting_member():
    """It is not found, as a job would not be."""
    handle = chain(tasks.say.signature(), tasks.say.signature()).using(tenant="acme").enqueue()
    waiting = UUID(handle.members[1].id)

    assert operate.cancel([waiting], tenant="globex").cancelled == []
    assert operate.cancel([waiting], tenant="acme").cancelled == [waiting]


def test_result_of_a_member_can_be_asked_for_before_its_turn():
    """Its id is known from the beginning, and the answer is that of every other task."""
    handle = chain(tasks.fail.signature(), tasks.say.signature("next")).enqueue()
    waiting = handle.members[1].id

    assert tasks.say.get_result(waiting).status == "READY"
    drain(raise_errors=False)
    result = tasks.say.get_result(waiting)
    assert (result.status, result.args) == ("FAILED", ["next"])
    handle.cancel()
    assert tasks.say.get_result(waiting).status == "FAILED"


# -- cleaning ----------------------------------------------------------------------------------------------------


def test_workflow_goes_when_its_retention_is_over():
    """With its members; until then the result can be read."""
    handle = run(chain(tasks.say.signature()).using(retention=60))
    assert operate.prune().workflows == 0

    advance(61)

    assert operate.prune().workflows == 3
    assert not WorkflowMember.objects.exists()
    with pytest.raises(WorkflowNotFoundError):
        handle.refresh()


def test_failed_workflow_is_kept_while_it_can_be_mended():
    """The results of its other members wait for the dead one, as long as that is there."""
    handle = run(
        chord([tasks.forget.signature(1), tasks.fail_unless_told.signature()], tasks.say.signature()).using(
            retention=0
        ),
        raise_errors=False,
    )
    advance(86_400)
    operate.prune_all()

    operate.requeue([handle.culprit])
    drain()

    handle.refresh()
    assert handle.result == [[1, "mended"]]


def test_failed_workflow_goes_once_nothing_can_mend_it():
    """A workflow whose dead member was discarded is history."""
    handle = run(chain(tasks.fail.signature()).using(retention=0), raise_errors=False)
    operate.discard([handle.culprit])

    advance(1)

    assert operate.prune().workflows == 3
