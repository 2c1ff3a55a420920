"""The ledger of the siege finds what it is there to find; a check that nothing can fail would prove nothing."""

from __future__ import annotations

import pytest

from django_workqueue.models import Failure, FinishedJob, Job, Lease
from testproject.benchmarks.ledger import balance, open_ledger
from tests.factories import FailureFactory, FinishedJobFactory, JobFactory, LeaseFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def job():
    """Return a job that lapsed once and then succeeded, all of it in the ledger."""
    open_ledger()
    job = JobFactory()
    lapsed = claim(job)
    Job.objects.filter(pk=job.pk).update(state="ready", lease=None)
    FailureFactory(job_id=job.pk, lease_id=lapsed.pk, kind="lapsed")
    claim(job)
    finish(job)
    return job


def claim(job):
    """Put the job under a new lease."""
    lease = LeaseFactory()
    Job.objects.filter(pk=job.pk).update(state="leased", lease=lease)
    return lease


def finish(job):
    """Move the job to the finished ones, and forget all leases."""
    Job.objects.filter(pk=job.pk).delete()
    FinishedJobFactory(id=job.pk)
    Lease.objects.all().delete()


def test_orderly_life_balances(job):
    """A lapse with its record and one success are two claims, two ends and no wrong."""
    books = balance([str(job.pk)])

    assert books.wrongs == []
    assert (books.claims, dict(books.failures), dict(books.places)) == (2, {"lapsed": 1}, {"finishedjob": 1})


def lose(job):
    """Let the finished row vanish."""
    FinishedJob.objects.all().delete()


def finish_again(job):
    """Record the success a second time."""
    FinishedJob.objects.all().delete()
    FinishedJobFactory(id=job.pk)


def forget_failure(job):
    """Let the record of the lapse vanish."""
    Failure.objects.all().delete()


def repeat_failure(job):
    """Record the lapse a second time."""
    failure = Failure.objects.get()
    FailureFactory(job_id=job.pk, lease_id=failure.lease_id, kind="lapsed")


def revive(job):
    """Let the job be live and finished at once."""
    JobFactory(id=job.pk)


def claim_for_ever(job):
    """Leave another job under a lease that nobody ends."""
    claim(JobFactory())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lose, "jobs lost"),
        (finish_again, "jobs that ended twice"),
        (forget_failure, "failed attempts without a Failure row"),
        (repeat_failure, "attempts with two Failure rows"),
        (revive, "jobs in two places"),
        (claim_for_ever, "claims without an end"),
    ],
)
def test_each_wrong_is_named(job, wrong, words):
    """Whatever the queue could do wrong shows in the books, by its name."""
    wrong(job)

    assert any(words in found for found in balance([str(job.pk)]).wrongs)
