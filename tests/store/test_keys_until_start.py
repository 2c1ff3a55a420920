"""
A key that is free from the start of its job: what becomes of it when the job waits again.

While the job ran, the key may have gone to another. There is never more than one waiting job under it, and no way back
into the queue may break on that.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.domain.outcomes import Retry
from django_workqueue.exceptions import DuplicateJobError
from django_workqueue.models import DeadLetter, Job, Lease
from tests import samples
from tests.claims import bury, claim, claim_one, complete, fail, put_back

pytestmark = pytest.mark.django_db


def reap(store, job) -> None:
    """Let the job's lease lapse and put the job back."""
    store.shift(31)
    store.reap(put_back)


def adopt(store, job) -> None:
    """Take the job back from a worker that restarted."""
    store.adopt(["worker-1"], put_back)


def release(store, job) -> None:
    """Give the job back unstarted."""
    store.release(job.lease_id, [job.id], last=True)


def release_unknown(store, job) -> None:
    """Give the job back after a lost answer."""
    store.release_unknown("worker-1", [])


def rescue(store, job) -> None:
    """Give the job back after its lease was deleted by hand."""
    Lease.objects.all().delete()
    store.rescue_orphans()


def retry(store, job) -> None:
    """Fail the attempt; another follows at once."""
    fail(store, job)


def retry_later(store, job) -> None:
    """Fail the attempt; another follows after a while."""
    fail(store, job, Retry(timedelta(seconds=60)))


WAYS_BACK = [reap, adopt, release, release_unknown, rescue, retry, retry_later]
ways_back = pytest.mark.parametrize("come_back", WAYS_BACK, ids=lambda way: way.__name__)


@ways_back
def test_key_that_nobody_took_comes_back_with_its_job(store, come_back):
    """It waits again, so it suppresses again."""
    first = samples.rebuild_index.enqueue()
    come_back(store, claim_one(store))

    assert samples.rebuild_index.enqueue().id == first.id
    assert Job.objects.count() == 1


@ways_back
def test_job_whose_key_was_taken_comes_back_without_it(store, come_back):
    """Both will run, and the key is the newcomer's."""
    first = samples.rebuild_index.enqueue()
    running = claim_one(store)
    second = samples.rebuild_index.enqueue()

    come_back(store, running)

    assert Job.objects.get(pk=first.id).dedupe_key is None
    assert Job.objects.get(pk=second.id).dedupe_key == "nightly"
    assert samples.rebuild_index.enqueue().id == second.id


@ways_back
def test_one_of_two_started_jobs_gets_the_key_back(store, come_back):
    """Two runs under one key, both come back: only one of them can wait with it."""
    samples.rebuild_index.enqueue()
    first = claim_one(store)
    samples.rebuild_index.enqueue()
    second = claim_one(store, worker="worker-1")

    for job in (first, second):
        come_back(store, job)

    assert sorted(Job.objects.values_list("dedupe_key", flat=True), key=str) == [None, "nightly"]
    assert not Job.objects.leased().exists()


@pytest.mark.parametrize("come_back", [reap, adopt, release_unknown], ids=lambda way: way.__name__)
def test_two_started_jobs_of_one_lease_come_back_at_once(store, come_back):
    """One statement puts both back."""
    samples.rebuild_index.enqueue()
    claim_one(store)
    samples.rebuild_index.enqueue()
    job = claim_one(store)
    Job.objects.update(lease=job.lease_id)

    come_back(store, job)

    assert sorted(Job.objects.values_list("dedupe_key", flat=True), key=str) == [None, "nightly"]


def test_running_jobs_do_not_hold_the_key(store):
    """Any number of runs, and one that waits."""
    for _ in range(3):
        samples.rebuild_index.enqueue()
        claim_one(store)
    waiting = samples.rebuild_index.enqueue()

    assert samples.rebuild_index.enqueue().id == waiting.id
    assert Job.objects.leased().count() == 3


def test_finished_job_tells_its_key(store):
    """What it was is kept in its row."""
    samples.rebuild_index.enqueue()
    job = claim_one(store)
    assert job.dedupe_key == "nightly"
    complete(store, job)

    assert not samples.rebuild_index.enqueue().duplicate


def test_requeue_is_refused_while_another_waits_and_allowed_while_it_runs(store):
    """A dead letter comes back as a waiting job."""
    samples.rebuild_index.enqueue()
    dead = claim_one(store)
    bury(store, dead)
    samples.rebuild_index.enqueue()
    with pytest.raises(DuplicateJobError):
        store.requeue(dead.id, attempts=1)
    claim(store)

    assert store.requeue(dead.id, attempts=1).dedupe_key == "nightly"
    assert not DeadLetter.objects.exists()
