"""What the dispatcher does about jobs that recorded their success themselves: it takes note, and writes nothing."""

from __future__ import annotations

from contextvars import copy_context

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError

from django_workqueue.domain.contract import task_finished
from django_workqueue.domain.outcomes import Failed, Succeeded
from django_workqueue.domain.states import FailureKind
from django_workqueue.lifecycle.run import Call, prepare, run
from django_workqueue.models import Failure, FinishedJob, Job, Lease
from django_workqueue.worker.thread import Backoff
from tests import samples
from tests.claims import succeeded

from .bench import WORKER, Bench

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(Backoff, "failed", lambda self: 0.0)


@pytest.fixture
def heard():
    """Collect the states that task_finished tells."""
    told = []

    def hear(sender, task_result, **_kwargs):
        told.append((task_result.status.value, task_result.is_finished and task_result.return_value))

    task_finished.connect(hear)
    yield told
    task_finished.disconnect(hear)


def run_all(bench: Bench) -> list:
    """Run what was started, as executors do, and return the settlements."""
    settlements = []
    for job in bench.start():
        call = prepare(job, bench.store, WORKER)
        assert isinstance(call, Call)
        # As in an executor: what a run leaves in its context ends with it.
        settlements.append(copy_context().run(run, call))
    return settlements


def hand_over(bench: Bench, *settlements) -> None:
    """Leave settlements on the board."""
    for settlement in settlements:
        bench.desks[0].finish(settlement)


def in_doubt(settlement):
    """Return what comes of an attempt whose commit got no answer."""
    failed = Failed(kind=FailureKind.ERROR, error_class="django.db.utils.OperationalError", message="closed")
    return settlement._replace(outcome=failed)


def test_success_is_counted_announced_and_its_lease_closed(heard):
    """As of any job, by the first round after it."""
    samples.add_group.enqueue("a")
    bench = Bench(concurrency=1)
    bench.round()
    hand_over(bench, *run_all(bench))
    assert Lease.objects.exists()
    assert bench.round()

    assert (bench.tally.done, len(bench.held), Lease.objects.count()) == (1, 0, 0)
    assert heard == [("SUCCESSFUL", "a")]


def test_lease_stays_for_the_others_that_it_covers(heard):
    """And is closed with the last of them, whichever that is."""
    samples.add_group.enqueue("a")
    samples.add.enqueue(1, 2)
    samples.add_group.enqueue("b")
    bench = Bench(concurrency=3)
    bench.dispatcher._pace.ran(0.0001)
    bench.round()
    assert Lease.objects.count() == 1
    settlements = run_all(bench)
    hand_over(bench, settlements[0])
    bench.round()
    assert (Lease.objects.count(), len(bench.held)) == (1, 1)
    hand_over(bench, *settlements[1:])
    bench.round()

    assert (bench.tally.done, FinishedJob.objects.count(), Lease.objects.count()) == (3, 3, 0)


def test_slot_of_its_concurrency_key_is_free_again():
    """The next job of the key goes in the same round."""
    for name in ("a", "b"):
        samples.add_group.using(concurrency_key="one", concurrency_limit=1).enqueue(name)
    bench = Bench(concurrency=2)
    for _ in range(2):
        bench.round()
        hand_over(bench, *run_all(bench))
    bench.round()

    assert bench.tally.done == 2
    assert not Job.objects.exists()


@pytest.mark.parametrize("sample", [samples.add_group, samples.add_group_untraced])
def test_commit_that_went_through_unheard_is_a_success(sample, heard):
    """It is looked up before anything is recorded."""
    sample.enqueue("a")
    bench = Bench(concurrency=1)
    bench.round()
    hand_over(bench, *map(in_doubt, run_all(bench)))
    assert bench.round()

    assert (bench.tally.done, bench.tally.failed, Lease.objects.count()) == (1, 0, 0)
    assert not Failure.objects.exists()
    assert [status for status, _ in heard] == ["SUCCESSFUL"]


def test_commit_that_never_arrived_is_a_failure():
    """The job is tried again."""
    samples.add_group.enqueue("a")
    bench = Bench(concurrency=1)
    bench.round()
    [job] = bench.start()
    hand_over(bench, in_doubt(succeeded(job)._replace(committed=Succeeded('"a"', 0.1))))
    assert bench.round()

    assert (bench.tally.done, bench.tally.failed) == (0, 1)
    assert Failure.objects.get().error_class == "django.db.utils.OperationalError"
    assert Job.objects.get().state == "scheduled"
    assert not Group.objects.exists()


@pytest.mark.parametrize("doubt", [False, True])
def test_success_at_the_moment_in_which_the_worker_leaves_is_one(doubt, caplog):
    """It is not reported as interrupted too, which would be refused and told as a lost lease."""
    samples.add_group.enqueue("a")
    samples.add.enqueue(1, 2)
    bench = Bench(concurrency=2)
    bench.dispatcher._pace.ran(0.0001)
    bench.round()
    ended, running = run_all(bench)
    bench.dispatcher._settler.interrupt([ended.job, running.job])
    hand_over(bench, in_doubt(ended) if doubt else ended)
    assert bench.dispatcher._guarded(bench.dispatcher._settle_connected)

    assert (bench.tally.done, bench.tally.failed, len(bench.held)) == (1, 1, 0)
    assert Failure.objects.get().kind == FailureKind.INTERRUPTED
    assert "is lost" not in caplog.text
    assert not Lease.objects.exists()


@pytest.mark.parametrize("verb", ["is_completed", "release"])
def test_database_that_is_away_puts_it_off(monkeypatch, verb):
    """Nothing is forgotten and nothing counted twice."""
    samples.add_group.enqueue("a")
    bench = Bench(concurrency=1)
    bench.round()
    hand_over(bench, *map(in_doubt, run_all(bench)))
    real, calls = getattr(bench.store, verb), []

    def away(*args, **options):
        calls.append(1)
        if len(calls) < 3:
            raise OperationalError("connection refused")
        return real(*args, **options)

    monkeypatch.setattr(bench.store, verb, away)
    rounds = [bench.round() for _ in range(3)]

    assert rounds == [False, False, True]
    assert (bench.tally.done, len(bench.held), Lease.objects.count()) == (1, 0, 0)
