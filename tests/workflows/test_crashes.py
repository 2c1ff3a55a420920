"""Workflows whose workers die, whose ends meet, and whose members are reported twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction

from django_workqueue import InvalidJobError, chain, chord, group
from django_workqueue.domain.contract import task_enqueued
from django_workqueue.domain.outcomes import Bury, Retry
from django_workqueue.domain.states import DeathReason
from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, FinishedJob, Job, Workflow, WorkflowMember
from django_workqueue.store import store_for
from django_workqueue.testing import ThreadedWorker, advance, drain
from tests.claims import claim, claim_one, failed, succeeded
from tests.racing import race

from . import sample_tasks as tasks


class PulledPlugError(Exception):
    """The process is gone."""


class Plug:
    """Lets a number of statements through, and pulls the plug before the next one."""

    def __init__(self, statements):
        self.left = statements

    def __call__(self, execute, sql, params, many, context):
        """See Django's execute_wrapper."""
        if not self.left:
            raise PulledPlugError
        self.left -= 1
        return execute(sql, params, many, context)


def settle(store, *jobs, result='"r"', last=True):
    """Settle claimed members of one lease as succeeded."""
    return store.complete_members(jobs[0].lease_id, [succeeded(job, result) for job in jobs], worker="w", last=last)


def pull_the_plug(step):
    """Run ``step`` again and again, each time with one statement more before the plug is pulled, up to its end."""
    for statements in range(200):
        try:
            with connection.execute_wrapper(Plug(statements)), transaction.atomic():
                step()
        except PulledPlugError:
            yield statements
        else:
            return


def books():
    """Return everything that a workflow consists of, as it is stored."""
    members = WorkflowMember.objects.order_by("position").values_list("state", "result")
    jobs = Job.objects.order_by("id").values_list("task", "state", "args")
    finished = FinishedJob.objects.order_by("id").values_list("task", "result")
    return [*members], [*jobs], [*finished], [*Workflow.objects.values_list("state", "done", "result")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("end", ["link", "barrier", "whole"])
def test_crash_at_any_statement_of_a_settlement_leaves_what_was_there(end):
    """The end of a link and the start of the next are one: there is no moment between them (celery/celery#9835)."""
    store = store_for()
    if end == "link":
        chain(tasks.say.signature(), tasks.join.signature()).enqueue()
    elif end == "barrier":
        chord([chain(tasks.say.signature(), tasks.say.signature())], tasks.say.signature()).enqueue()
        settle(store, claim_one(store))
    else:
        chord([], tasks.say.signature()).enqueue()
    job = claim_one(store)
    before = books()

    for _ in pull_the_plug(lambda: settle(store, job)):
        assert books() == before

    follows = {"link": [tasks.join.module_path], "barrier": [tasks.say.module_path], "whole": []}
    assert [row.task for row in Job.objects.all()] == follows[end]
    assert Workflow.objects.get().state == ("succeeded" if end == "whole" else "running")


@pytest.mark.django_db(transaction=True)
def test_crash_at_any_statement_of_a_death_leaves_what_was_there():
    """The dead letter, the failed workflow and the error callback come together or not at all."""
    store = store_for()
    chain(tasks.fail.signature()).using(on_error=tasks.say.signature()).enqueue()
    job = claim_one(store)
    before = books()

    def die():
        store.fail(failed(job), Bury(DeathReason.EXHAUSTED), worker="w", last=True)

    for _ in pull_the_plug(die):
        assert books() == before
        assert not DeadLetter.objects.exists()

    assert [row.task for row in Job.objects.all()] == [tasks.say.module_path]
    assert Workflow.objects.get().state == "failed"


@pytest.mark.django_db(transaction=True)
def test_crash_at_any_statement_of_an_enqueue_leaves_nothing():
    """A graph is stored whole or not at all (bensheldon/good_job#712)."""
    graph = chord([tasks.say.signature()] * 3, tasks.say.signature())

    for _ in pull_the_plug(graph.enqueue):
        assert books() == ([], [], [], [])

    assert Job.objects.count() == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_round", range(5))
def test_last_two_members_that_end_together_start_the_body_once(_round):
    """Each of them must see the other's end, whichever is first."""
    chord([tasks.say.signature(), tasks.say.signature()], tasks.say.signature()).enqueue()
    store = store_for()
    one, other = claim_one(store), claim_one(store)

    def report(job):
        def end():
            mine = store_for()
            mine.prepare()
            return settle(mine, job)

        return end

    answers = race(report(one), report(other))

    assert sorted(len(answer.started) for answer in answers) == [0, 1]
    assert Job.objects.get().decoded_args == [["r", "r"]]
    assert Workflow.objects.get().done == 2


@pytest.mark.django_db(transaction=True)
def test_members_of_many_workflows_that_end_together_do_not_wait_in_a_ring():
    """Two workers settle batches with the same workflows in them, in whichever order."""
    for _ in range(6):
        group(tasks.say.signature(), tasks.say.signature()).enqueue()
    store = store_for()
    batches = [claim(store, limit=6, quantum=6), list(reversed(claim(store, limit=6, quantum=6)))]

    def report(jobs):
        def end():
            mine = store_for()
            mine.prepare()
            return settle(mine, *jobs)

        return end

    race(*map(report, batches))

    assert set(Workflow.objects.values_list("state", "done")) == {("succeeded", 2)}


@pytest.mark.django_db
def test_member_reported_twice_counts_once(store):
    """The second report comes from a worker whose lease is over: it is refused and starts nothing."""
    chord([tasks.say.signature(), tasks.say.signature()], tasks.say.signature()).enqueue()
    job = claim_one(store)
    settle(store, job)

    again = settle(store, job)

    assert (again.settled, again.started) == (set(), [])
    assert Workflow.objects.get().done == 1


@pytest.mark.django_db
def test_member_that_was_reaped_runs_again_and_counts_once(store):
    """A worker that is thought dead reports late: the other attempt is the one that counts."""
    chord([tasks.say.signature(), tasks.say.signature()], tasks.say.signature("body")).enqueue()
    late = claim_one(store)
    advance(3600)
    operate.reap_once()

    assert settle(store, late).settled == set()
    drain()

    workflow = Workflow.objects.get()
    assert (workflow.state, workflow.done, workflow.size) == ("succeeded", 3, 3)


@pytest.mark.django_db
def test_lapsed_member_that_dies_fails_its_workflow(store):
    """Who is lost with a worker for good is to blame like one that raised."""
    handle = chain(tasks.say.signature().using(max_attempts=1), tasks.say.signature()).enqueue()
    job = claim_one(store)
    advance(3600)

    operate.reap_once()

    handle.refresh()
    assert (handle.status, handle.culprit) == ("failed", str(job.id))
    assert handle.problem.startswith("lapsed")


@pytest.mark.django_db
def test_member_that_comes_back_leaves_its_workflow_running(store):
    """A failed attempt is not the end of a job, and so not that of a workflow."""
    handle = chain(tasks.say.signature()).enqueue()
    job = claim_one(store)

    store.fail(failed(job), Retry(timedelta(seconds=1)), worker="w", last=True)

    handle.refresh()
    assert handle.status == "running"


@pytest.mark.django_db
def test_members_and_plain_jobs_settle_in_one_batch(store):
    """What shares a lease shares its end, and no job pays for being beside a workflow."""
    chain(tasks.say.signature(), tasks.say.signature("next")).enqueue()
    tasks.say.enqueue()
    jobs = claim(store)

    settled, started = settle(store, *jobs)

    assert settled == {job.id for job in jobs}
    assert [job.decoded_args for job in started] == [["r", "next"]]


def test_workflow_on_a_backend_that_stores_nothing_is_refused(settings):
    """By name: what a dummy remembers would never be carried on."""
    settings.TASKS = {"default": {"BACKEND": "django_workqueue.testing.DummyBackend"}}

    with pytest.raises(InvalidJobError, match="DummyBackend"):
        chain(tasks.say.signature()).enqueue()


@pytest.mark.django_db
@pytest.mark.parametrize("first", [tasks.say, tasks.say_atomically], ids=["settled", "atomic"])
def test_every_start_of_a_member_is_announced(store, first):
    """Whoever watches enqueues sees the links too, each when its turn has come."""
    seen = []

    def note(sender, task_result, **_more):
        seen.append(task_result.id)

    task_enqueued.connect(note)
    try:
        handle = chain(first.signature(), tasks.say.signature()).enqueue()
        assert seen == [handle.members[0].id]
        drain()
    finally:
        task_enqueued.disconnect(note)

    assert seen == [member.id for member in handle.members]


@pytest.mark.django_db(transaction=True)
def test_atomic_member_starts_what_follows_in_its_own_transaction():
    """Its writes, its success and the next link are one; on a real worker too."""
    handle = chain(tasks.forget_atomically.signature("a"), tasks.join.signature("b")).enqueue()

    with ThreadedWorker() as worker:
        worker.settle()

    handle.refresh()
    assert handle.result == "a-b"
