"""The whole life of a job in a project that sets USE_TZ to False: no time is compared with one of another kind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.conf import get_settings
from django_workqueue.domain.rotation import Rotation
from django_workqueue.domain.states import FailureKind
from django_workqueue.lifecycle import claim as claiming
from django_workqueue.lifecycle import operate, reap, settle
from django_workqueue.models import FinishedJob, Job
from django_workqueue.store import store_for
from tests import samples
from tests.claims import bury, claim_one, complete, fail, failed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def naive_store(settings):
    """Return a worker's store in a project without time zones, its own zone far from UTC."""
    settings.USE_TZ = False
    settings.TIME_ZONE = "Asia/Kolkata"
    made = store_for()
    made.prepare()
    return made


def test_job_is_claimed_and_completed(naive_store):
    """From enqueue to result, and on to the prune."""
    result = samples.add.enqueue(1, 2)
    rotation = Rotation()
    rotation.learn([""])
    [job] = claiming.claim(naive_store, rotation, queue="default", worker="w", limit=1)
    complete(naive_store, job, worker="w")

    result.refresh()

    assert result.started_at < result.finished_at
    assert (result.enqueued_at.tzinfo, result.finished_at.tzinfo) == (None, None)
    assert FinishedJob.objects.get().expires_at - result.finished_at == timedelta(days=1)
    naive_store.shift(86_500)
    assert operate.prune().finished == 1


def test_marks_are_remembered_between_claims(naive_store):
    """The second claim starts behind the mark that the first one left."""
    rotation = Rotation()
    for _ in range(3):
        samples.add.enqueue(1, 2)
        rotation.learn([""])
        assert len(claiming.claim(naive_store, rotation, queue="default", worker="w", limit=1)) == 1


def test_delayed_job_becomes_due(naive_store):
    """Due times are judged by the clock that made them."""
    samples.add.using(run_after=timedelta(seconds=60)).enqueue(1, 2)

    assert naive_store.promote() == set()
    assert timedelta(seconds=50) < naive_store.next_due() <= timedelta(seconds=60)
    naive_store.shift(61)
    assert naive_store.promote() == {("default", "")}


def test_failed_job_is_retried_and_dies(naive_store):
    """History and dead letters carry times as the project has them."""
    result = samples.fail.enqueue()
    fail(naive_store, claim_one(naive_store))
    bury(naive_store, claim_one(naive_store))

    result.refresh()

    assert len(result.errors) == 2
    assert operate.requeue([Job(pk=result.id).pk]).job_ids
    assert claim_one(naive_store).attempts == 3


def test_unknown_task_runs_out_of_patience(naive_store, settings):
    """Patience is counted from a stored time."""
    samples.add.enqueue(1, 2)
    job = claim_one(naive_store)
    unknown = failed(job, kind=FailureKind.UNKNOWN_TASK)
    settle.fail(naive_store, unknown, worker="w", last=True)
    naive_store.shift(3700)
    naive_store.promote()

    again = claim_one(naive_store)
    settle.fail(naive_store, failed(again, kind=FailureKind.UNKNOWN_TASK), worker="w", last=True)

    assert get_settings().unknown_task_patience == timedelta(hours=1)
    assert not Job.objects.exists()


def test_lapsed_lease_is_reaped_and_living_one_renewed(naive_store):
    """Expiry is judged by the database, and its age is told."""
    samples.add.enqueue(1, 2)
    job = claim_one(naive_store)
    naive_store.shift(20)
    assert naive_store.renew({job.lease_id: timedelta(seconds=30)}) == {job.lease_id}
    assert reap.reap(naive_store) == []
    naive_store.shift(31)

    assert [moved.job_id for moved in reap.reap(naive_store)] == [job.id]


def test_statistics_tell_ages(naive_store):
    """Depth and age, whatever the zone."""
    samples.add.enqueue(1, 2)
    naive_store.shift(60)

    [stats] = operate.stats()

    assert 59 < stats.oldest_age_seconds < 90
