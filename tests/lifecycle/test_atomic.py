"""Atomic tasks: what the body wrote and the record of its success happen together, or neither does."""

from __future__ import annotations

import contextvars
import logging

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection

from django_workqueue import chain, task
from django_workqueue.domain.outcomes import Failed, Retry, Settlement, Succeeded
from django_workqueue.domain.states import FailureKind
from django_workqueue.exceptions import JobTimeoutError
from django_workqueue.lifecycle import settle
from django_workqueue.lifecycle.run import prepare, run
from django_workqueue.models import Failure, FinishedJob, Job, Lease, Step
from tests import samples
from tests.claims import claim_one

pytestmark = pytest.mark.django_db(transaction=True)


def attempt(store) -> Settlement:
    """Claim the next job and run it as an executor does."""
    return run_call(store, claim_one(store))


def run_call(store, job) -> Settlement:
    """Run a claimed job as an executor does."""
    return contextvars.Context().run(run, prepare(job, store, "worker-1"))


def groups() -> list[str]:
    """Return the names of the rows that bodies wrote."""
    return sorted(Group.objects.values_list("name", flat=True))


def attempt_unheard(store, *, done: bool) -> Settlement:
    """Run the next job, whose commit gets no answer, after it went through or before."""
    job, real = claim_one(store), connection._commit

    def commit():
        if done:
            real()
        raise OperationalError("server closed the connection unexpectedly")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_commit", commit)
        return run_call(store, job)


def test_success_is_recorded_by_the_bodys_own_transaction(store):
    """When the outcome is handed over, all is committed; nothing is left for the settler to write."""
    samples.add_group.enqueue("a", follow=True)
    settlement = attempt(store)

    assert groups() == ["a"]
    finished = FinishedJob.objects.get()
    assert (finished.result, finished.worker, finished.attempts) == ('"a"', "worker-1", 1)
    assert settlement.committed is settlement.outcome
    assert [job.task for job in Job.objects.all()] == ["tests.samples.add"]
    assert Lease.objects.count() == 1


def test_body_that_raises_leaves_nothing(store):
    """Neither its rows nor the jobs that it enqueued; the failure is settled as ever."""
    samples.add_group.enqueue("a", error="no paper", follow=True)
    settlement = attempt(store)

    assert (groups(), Job.objects.count()) == ([], 1)
    assert isinstance(settlement.outcome, Failed)
    assert settlement.committed is None
    assert settle.fail(store, settlement, worker="worker-1", last=True)
    assert "no paper" in Failure.objects.get().message


def test_lost_lease_rolls_all_back(store):
    """The attempt that counts is another one, and this one wrote nothing."""
    samples.add_group.enqueue("a", follow=True)
    job = claim_one(store)
    store.shift(31)
    settlement = run_call(store, job)

    assert groups() == []
    assert [row.pk for row in Job.objects.all()] == [job.id]
    assert not FinishedJob.objects.exists()
    assert settlement.outcome.error_class == "django_workqueue.exceptions.LeaseLostError"
    assert settle.fail(store, settlement, worker="worker-1", last=True) is None


def test_lost_lease_is_no_reason_to_die(store):
    """Where the clock was set back and the lease holds again after all, the attempt is one that failed."""
    samples.add_group.enqueue("a")
    job = claim_one(store)
    store.shift(31)
    settlement = run_call(store, job)
    store.shift(-31)

    assert isinstance(settle.fail(store, settlement, worker="worker-1", last=True), Retry)


def test_error_that_the_body_caught_in_a_broken_transaction_is_a_failure(store):
    """Nothing can be recorded in it any more, and half of the work must not pass for all of it."""
    samples.break_own_transaction.enqueue("a")
    settlement = attempt(store)

    assert groups() == []
    assert "TransactionManagementError" in settlement.outcome.error_class
    assert not connection.in_atomic_block


def test_result_that_cannot_be_stored_rolls_all_back(store):
    """The attempt fails by name, so nothing of it stays."""
    samples.add_group_and_return_it.enqueue("a")
    settlement = attempt(store)

    assert settlement.outcome.error_class == "django_workqueue.exceptions.PayloadError"
    assert groups() == []


def test_callback_after_the_commit_cannot_undo_the_job(store, caplog):
    """The job is done; what the callback raised is logged, without its text."""
    samples.add_group_and_hook.enqueue("a")
    with caplog.at_level(logging.ERROR, logger="django_workqueue"):
        settlement = attempt(store)

    assert (groups(), FinishedJob.objects.count()) == (["a"], 1)
    assert settlement.committed is settlement.outcome
    assert "A callback after the commit of job" in caplog.text


def test_step_of_an_atomic_task_shares_its_transaction(store):
    """It is recorded with the rest, or not at all."""
    samples.add_group_by_step.enqueue("a")
    settlement = attempt(store)

    assert isinstance(settlement.outcome, Succeeded)
    assert (groups(), Step.objects.get().outcome) == (["a"], '"a"')


@pytest.mark.parametrize("sample", [samples.add_group, samples.add_group_untraced])
def test_commit_that_went_through_unheard_is_found_out(store, caplog, sample):
    """Also where no row is kept: while the lease holds, nobody else can have taken the job."""
    sample.enqueue("a")
    with caplog.at_level(logging.WARNING, logger="django_workqueue"):
        settlement = attempt_unheard(store, done=True)

    assert isinstance(settlement.outcome, Failed)
    assert isinstance(settlement.committed, Succeeded)
    assert settle.was_committed(store, settlement, worker="worker-1")
    assert groups() == ["a"]
    assert "gave no answer: OperationalError" in caplog.text
    assert "unexpectedly" not in caplog.text


@pytest.mark.parametrize("sample", [samples.add_group, samples.add_group_untraced])
def test_commit_that_never_arrived_is_a_failure(store, sample):
    """The job is still under its lease."""
    sample.enqueue("a")
    settlement = attempt_unheard(store, done=False)

    assert not settle.was_committed(store, settlement, worker="worker-1")
    assert settle.fail(store, settlement, worker="worker-1", last=True)
    assert groups() == []
    assert Job.objects.get().attempts == 1


def test_commit_of_which_nothing_can_be_known_any_more_is_not_claimed(store):
    """No row is kept and the lease has lapsed: the job may be another's by now, and a report of it is refused."""
    samples.add_group_untraced.enqueue("a")
    settlement = attempt_unheard(store, done=True)
    store.shift(31)

    assert not settle.was_committed(store, settlement, worker="worker-1")
    assert settle.fail(store, settlement, worker="worker-1", last=True) is None


class StruckAtTheEnd:
    """A hold whose strike arrives just as the body has ended."""

    def __init__(self) -> None:
        self.let_go_at = []

    def take(self, call):
        """Begin."""

    def let_go(self):
        """End, and be struck the first time."""
        self.let_go_at.append(connection.in_atomic_block)
        if len(self.let_go_at) == 1:
            raise JobTimeoutError


def test_body_that_is_ended_from_outside_leaves_nothing(store):
    """The strike arrives inside the transaction or not at all: the record and the commit are never struck."""
    samples.add_group.enqueue("a", follow=True)
    hold = StruckAtTheEnd()
    call = prepare(claim_one(store), store, "worker-1")
    settlement = contextvars.Context().run(run, call, hold=hold)

    assert (settlement.outcome.kind, settlement.committed) == (FailureKind.TIMEOUT, None)
    assert (groups(), Job.objects.count()) == ([], 1)
    assert hold.let_go_at == [True, False]


def test_next_member_of_a_workflow_starts_with_the_commit(store):
    """The end of a link and the start of the next are one transaction, here that of the body."""
    chain(samples.add_group.signature("a"), samples.add.signature("b")).enqueue()
    settlement = attempt(store)

    assert settlement.committed is settlement.outcome
    [follower] = Job.objects.all()
    assert (follower.task, follower.state) == ("tests.samples.add", "ready")


def test_next_member_of_a_workflow_does_not_start_without_it(store):
    """A lost lease takes its start back with the rest."""
    chain(samples.add_group.signature("a"), samples.add.signature("b")).enqueue()
    job = claim_one(store)
    store.shift(31)
    run_call(store, job)

    assert not Job.objects.filter(task="tests.samples.add", state="ready").exists()
    assert groups() == []


def test_project_chooses_how_other_transactions_begin(store):
    """On SQLite an atomic task begins as a writer, and the next job of the thread as the project has it."""
    before = getattr(connection, "transaction_mode", None)
    samples.add_group.enqueue("a")
    attempt(store)

    assert getattr(connection, "transaction_mode", None) == before


def test_coroutine_function_cannot_be_atomic():
    """Django has no transactions across awaits; it is said where the task is declared."""

    async def body():
        pass

    with pytest.raises(TypeError, match="cannot be atomic"):
        task(atomic=True)(body)
