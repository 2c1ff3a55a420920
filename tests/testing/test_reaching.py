"""What a job that ``drain`` runs says of itself, and how it hears that nobody wants it any more."""

from __future__ import annotations

import pytest

from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, Failure, FinishedJob
from django_workqueue.testing import drain

from . import sample_tasks as tasks

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_done():
    tasks.done.clear()


HALF = '{"done":1,"total":2,"text":"half"}'


@pytest.mark.parametrize("task", [tasks.reach_out, tasks.reach_out_later], ids=["function", "coroutine"])
def test_running_job_reaches_its_row(task):
    """It reports, renews and hears as under a worker; one that is cancelled is no failure."""
    result = task.enqueue()

    [attempt] = drain()

    assert (attempt.ending, attempt.error) == ("cancelled", None)
    assert tasks.done == [(HALF, False, True)]
    assert str(FinishedJob.objects.get(outcome="cancelled").pk) == result.id
    assert not Failure.objects.exists()


def test_cancelled_job_is_not_run():
    """It waited, and is over."""
    result = tasks.note.enqueue("hello")
    operate.cancel([result.id])

    assert drain() == []
    assert tasks.done == []


def test_job_that_fails_after_the_request_is_dead():
    """And is not retried."""
    tasks.fail_when_cancelled.enqueue()

    [attempt] = drain(raise_errors=False)

    assert attempt.ending == "dead"
    assert DeadLetter.objects.get().reason == "cancelled"


def test_job_that_returns_after_the_request_has_succeeded():
    """It was done."""
    tasks.return_when_cancelled.enqueue()

    [attempt] = drain()

    assert (attempt.ending, attempt.result) == ("succeeded", "done")
