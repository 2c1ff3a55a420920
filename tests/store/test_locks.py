"""Locks are taken in one order, a lease, workflows, jobs, and what is counted under a lock is counted afresh."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections, transaction

from django_workqueue.domain.pauses import Pauses
from django_workqueue.domain.rotation import Rotation
from django_workqueue.domain.states import JobState
from django_workqueue.lifecycle import claim as claiming
from django_workqueue.lifecycle.reap import judge
from django_workqueue.models import FinishedJob, Job, Lease, Workflow
from django_workqueue.store import store_for
from tests.claims import claim_one
from tests.factories import JobFactory, WorkflowFactory
from tests.racing import PATIENCE_SECONDS, race

from .test_races import prepared

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

BLOCKED_BY_US = "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


def wait_until_it_is_blocked(future: Future[Any]) -> None:
    """Wait until another connection waits for what this one holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with connection.cursor() as cursor:
        while not cursor.execute(BLOCKED_BY_US) or cursor.fetchone() is None:
            assert not future.done(), "it did not wait"
            assert time.monotonic() < deadline, "it did not come so far"
            time.sleep(0.01)


@contextmanager
def while_it_waits(workflow: Workflow, act: Callable[[], Any]) -> Iterator[None]:
    """Hold a workflow, let ``act`` run into it on another connection, and let both go on in the end."""

    def closing() -> Any:
        try:
            return act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Workflow.objects.select_for_update().get(pk=workflow.pk)
            future = pool.submit(closing)
            wait_until_it_is_blocked(future)
            yield
        future.result(PATIENCE_SECONDS)


def member(store, workflow):
    """Return a claimed job of a workflow that is to be cancelled."""
    JobFactory(workflow=workflow.pk)
    job = claim_one(store)
    store.cancel(job.id)
    return job


def release(job):
    """Give it back."""
    store_for().release(job.lease_id, [job.id], last=True)


def park(job):
    """Set it aside."""
    store_for().park(job.lease_id, [job.id], last=True)


def release_unknown(job):
    """Give it back as the worker that never heard of its claim."""
    del job
    store_for().release_unknown("worker-1", [])


def rescue(job):
    """Give it back after its lease was deleted by hand."""
    Lease.objects.filter(pk=job.lease_id).delete()
    store_for().rescue_orphans()


@pytest.mark.parametrize("give_back", [release, park, release_unknown, rescue])
def test_job_that_proves_cancelled_when_it_comes_back_is_locked_after_its_workflow(store, give_back):
    """Or whoever cancels it a second time, by force say, and whoever gives it back would wait for each other."""
    workflow = WorkflowFactory()
    job = member(store, workflow)

    with while_it_waits(workflow, lambda: give_back(job)):
        assert Job.objects.select_for_update(nowait=True).get(pk=job.id)

    assert FinishedJob.objects.get().pk == job.id


@pytest.mark.parametrize("give_back", [release, park, release_unknown, rescue])
def test_job_that_might_prove_cancelled_when_it_comes_back_is_locked_after_its_workflow(store, give_back):
    """Somebody may ask for its end between the look for who did and its lock: a deadlock with whoever asks again."""
    workflow = WorkflowFactory()
    JobFactory(workflow=workflow.pk)
    job = claim_one(store)

    with while_it_waits(workflow, lambda: give_back(job)):
        assert Job.objects.select_for_update(nowait=True).get(pk=job.id)

    assert Job.objects.get(pk=job.id).state in {JobState.READY, JobState.PARKED}


def test_workflows_of_several_lapsed_leases_are_locked_at_once_and_before_any_job(store):
    """Lease by lease, a reaper and the settler of a batch would take the same two in opposite orders."""
    first, second = sorted(WorkflowFactory.create_batch(2), key=lambda workflow: workflow.pk)
    later, earlier = member(store, second), member(store, first)
    assert later.lease_id < earlier.lease_id
    store.shift(31)

    with while_it_waits(first, lambda: store_for().reap(judge)):
        assert Workflow.objects.select_for_update(nowait=True).get(pk=second.pk)
        assert Job.objects.select_for_update(nowait=True).get(pk=later.id)

    assert FinishedJob.objects.count() == 2


@pytest.mark.parametrize("pooled", [False, True])
def test_worker_counts_under_a_lock_what_the_one_before_has_done(monkeypatch, pooled):
    """Whatever isolation the project has chosen: an older snapshot would let too many in."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", 4)  # SERIALIZABLE

    def level():
        mine = store_for()
        mine.pooled = pooled
        mine.prepare()
        with mine.exclusive("default"), mine.connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            return cursor.fetchone()[0]

    assert race(level) == ["read committed"]


def test_claim_that_parks_waits_for_no_workflow(settings):
    """Within limits it has locked the jobs already, and whoever cancels one of them locks its workflow first."""
    settings.WORKQUEUE = {"CONCURRENCY": 3}
    workflow = WorkflowFactory()
    job = JobFactory(workflow=workflow.pk)

    def claim_and_park():
        mine, rotation = prepared(), Rotation()
        rotation.learn([""])
        pauses = Pauses(tasks=frozenset({job.task}))
        claiming.claim(mine, rotation, queue="default", worker="worker-1", limit=1, pauses=pauses)
        return rotation.hold

    with transaction.atomic():
        Workflow.objects.select_for_update().get(pk=workflow.pk)
        assert race(claim_and_park) == [None]

    assert Job.objects.get().state == JobState.PARKED
