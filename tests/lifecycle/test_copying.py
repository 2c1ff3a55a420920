"""Enqueueing a job that is over once more: a new job, through the usual door, never by accident."""

from __future__ import annotations

import json
import logging
import uuid

import pytest

from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, FinishedJob, Job
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory

pytestmark = pytest.mark.django_db

ADD = {"task": "tests.samples.add", "args": "[1,2]", "kwargs": "{}"}


def test_copy_is_a_new_job_with_the_same_work():
    """What it is a copy of stays; keys that say "only once", workflow and marks of the queue are not copied."""
    over = FinishedJobFactory(
        **ADD,
        queue="mail",
        tenant="acme",
        priority=7,
        max_attempts=3,
        dedupe_key="order-1",
        workflow=uuid.uuid4(),
        metadata='{"correlation_id":"x1","_schedule":"nightly"}',
    )

    done = operate.copy([over.pk])

    job = Job.objects.get()
    assert done.copies == {over.pk: job.pk}
    assert (job.task, job.args, job.kwargs) == (over.task, "[1,2]", "{}")
    assert (job.queue, job.tenant, job.priority, job.max_attempts, job.attempts) == ("mail", "acme", 7, 3, 0)
    assert (job.dedupe_key, job.workflow) == (None, None)
    assert json.loads(job.metadata) == {"correlation_id": "x1", "_copy_of": str(over.pk)}
    assert FinishedJob.objects.get().pk == over.pk


def test_dead_letter_can_be_copied_and_stays_dead():
    """To try what a fix has changed, while the decision about the letter is still open."""
    letter = DeadLetterFactory(**ADD, attempts=5)

    operate.copy([letter.pk])

    assert Job.objects.get().attempts == 0
    assert DeadLetter.objects.get().pk == letter.pk


def test_limit_of_a_concurrency_key_holds_for_copies(django_capture_on_commit_callbacks):
    """A copy waits for its slot like any other."""
    over = FinishedJobFactory(**ADD, concurrency_key="printer", concurrency_limit=1)

    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            operate.copy([over.pk])

    assert sorted(Job.objects.values_list("state", flat=True)) == ["blocked", "ready"]


def test_who_asks_twice_with_one_seed_gets_one_copy():
    """A double click, a reload and a job that is delivered again double nothing, wherever the copy is by then."""
    over, seed = FinishedJobFactory(**ADD), uuid.uuid4()
    (copy_id,) = operate.copy([over.pk], seed=seed).copies.values()

    live = operate.copy([over.pk], seed=seed)
    Job.objects.all().delete()
    DeadLetterFactory(id=copy_id)
    dead = operate.copy([over.pk], seed=seed)

    for again in (live, dead):
        assert again.copies == {}
        assert str(copy_id) in again.refused[0].problem
    assert operate.copy([over.pk], seed=uuid.uuid4()).copies.keys() == {over.pk}


def test_refusals_are_named_and_do_not_stop_the_others():
    """What is live, gone, unknown, undecodable or does not fit any more."""
    refused = [
        JobFactory(**ADD).pk,
        uuid.uuid4(),
        FinishedJobFactory(task="shop.tasks.removed").pk,
        FinishedJobFactory(**ADD | {"args": "[broken"}).pk,
        FinishedJobFactory(**ADD | {"args": "[1,2,3]"}).pk,
    ]
    fine = FinishedJobFactory(**ADD)

    done = operate.copy([*refused, fine.pk])

    assert list(done.copies) == [fine.pk]
    assert [refusal.job_id for refusal in done.refused] == refused
    assert all(refusal.problem for refusal in done.refused)


def test_tenant_reaches_no_other_tenants_jobs():
    """Nor learns that they exist."""
    over = FinishedJobFactory(**ADD, tenant="acme")

    assert operate.copy([over.pk], tenant="globex").copies == {}
    assert operate.copy([over.pk], tenant="acme").copies.keys() == {over.pk}


def test_hooks_see_a_copy_as_any_new_job(settings):
    """What a project checks or adds at the door, it checks and adds here."""
    settings.WORKQUEUE = {"ENQUEUE_HOOKS": [f"{__name__}.into_the_slow_queue"]}
    over = FinishedJobFactory(**ADD)

    operate.copy([over.pk])

    assert Job.objects.get().queue == "slow"


def into_the_slow_queue(new):
    """Choose the queue for every job."""
    new.queue = "slow"


def test_copy_is_logged_without_arguments(caplog):
    """Somebody did this."""
    over = FinishedJobFactory(**ADD)
    with caplog.at_level(logging.INFO, logger="django_workqueue.operate"):
        operate.copy([over.pk])

    assert caplog.records[0].copy_of == str(over.pk)
