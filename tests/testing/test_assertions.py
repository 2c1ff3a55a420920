"""``enqueued`` and the assertions find jobs by what they are, and say what is there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_workqueue.models import Job
from django_workqueue.testing import assertions
from tests.claims import claim_one

from . import sample_tasks as tasks

pytestmark = pytest.mark.django_db

HERE = "tests.testing.sample_tasks"


def enqueue_three():
    """Enqueue three jobs that differ in everything."""
    tasks.note.enqueue("one")
    tasks.note.using(tenant="acme", run_after=timedelta(hours=1)).enqueue(value="two")
    tasks.note_in_mail.enqueue("three")


@pytest.mark.parametrize(
    ("criteria", "found"),
    [
        ({}, 3),
        ({"task": tasks.note}, 2),
        ({"task": f"{HERE}.note"}, 2),
        ({"task": tasks.fail}, 0),
        ({"args": ["one"]}, 1),
        ({"args": ("one",)}, 1),
        ({"args": []}, 1),
        ({"kwargs": {"value": "two"}}, 1),
        ({"kwargs": {}}, 2),
        ({"queue": "mail"}, 1),
        ({"tenant": "acme"}, 1),
        ({"tenant": ""}, 2),
        ({"run_after": timedelta(hours=1)}, 1),
        ({"run_after": timedelta()}, 2),
        ({"run_after": timedelta(minutes=59)}, 0),
        ({"task": tasks.note, "queue": "mail"}, 0),
        ({"task": None, "args": None, "queue": None}, 3),
    ],
)
def test_jobs_are_found_by_what_they_are(workqueue, criteria, found):
    """Every criterion narrows the search, and none of them matches everything."""
    enqueue_three()

    assert len(workqueue.enqueued(**criteria)) == found
    assert len(workqueue.assert_enqueued(**criteria, times=found)) == found


def test_jobs_are_found_by_their_moment(workqueue):
    """A moment is matched exactly."""
    moment = timezone.now() + timedelta(days=1)
    tasks.note.using(run_after=moment).enqueue("tomorrow")

    workqueue.assert_enqueued(tasks.note, run_after=moment)
    workqueue.assert_not_enqueued(tasks.note, run_after=moment + timedelta(seconds=1))


def test_jobs_are_answered_oldest_first(workqueue):
    """In the order in which the code under test enqueued them."""
    for value in ("b", "a", "c"):
        tasks.note.enqueue(value)

    assert [job.decoded_args for job in workqueue.enqueued(tasks.note)] == [["b"], ["a"], ["c"]]


def test_running_and_retried_jobs_are_live(workqueue, store):
    """A job is there until it has ended."""
    tasks.note.enqueue("running")
    claim_one(store)
    workqueue.assert_enqueued(tasks.note, times=1)

    tasks.fail.enqueue("no paper")
    workqueue.drain(raise_errors=False)
    workqueue.assert_enqueued(tasks.fail, times=1)


def test_finished_jobs_are_not_live(workqueue):
    """What was run is not to be run."""
    tasks.note.enqueue("done")
    workqueue.drain()

    workqueue.assert_not_enqueued(tasks.note)


def test_missing_job_is_reported_with_what_is_there(workqueue):
    """The answer to why the assertion fails is most often in the list."""
    enqueue_three()

    with pytest.raises(AssertionError) as raised:
        workqueue.assert_enqueued(tasks.note, args=["four"], queue="mail")

    first, second, *lines = str(raised.value).splitlines()
    assert first == (
        f"Expected at least 1 of a job with task='{HERE}.note', args=['four'], queue='mail', found 0. Enqueued are:"
    )
    assert second == f"""  {HERE}.note: args=["one"], kwargs={{}}, queue='default', ready"""
    assert lines[0].startswith(
        f"""  {HERE}.note: args=[], kwargs={{"value":"two"}}, queue='default', tenant='acme', scheduled for 20"""
    )
    assert lines[1] == f"""  {HERE}.note_in_mail: args=["three"], kwargs={{}}, queue='mail', ready"""


def test_wrong_count_is_reported(workqueue):
    """One too many is as wrong as one too few."""
    enqueue_three()

    with pytest.raises(AssertionError, match=r"Expected 1 of any job, found 3\. Enqueued are:"):
        workqueue.assert_enqueued(times=1)


def test_unexpected_job_is_reported(workqueue):
    """``assert_not_enqueued`` names it."""
    tasks.note.enqueue("one")

    with pytest.raises(AssertionError, match=r"Expected 0 of a job with task=.*, found 1\. Enqueued are:"):
        workqueue.assert_not_enqueued(tasks.note)


def test_empty_queue_is_reported_as_such(workqueue):
    """Nothing at all was enqueued: look at the code under test, and not at the arguments."""
    with pytest.raises(AssertionError, match=r"found 0\. Nothing is enqueued\."):
        workqueue.assert_enqueued(tasks.note)


def test_long_list_is_cut(workqueue, monkeypatch):
    """A message must be readable."""
    monkeypatch.setattr(assertions, "MOST_LISTED", 2)
    for value in range(5):
        tasks.note.enqueue(value)

    with pytest.raises(AssertionError, match=r"\n  \.\.\. and 3 more$"):
        workqueue.assert_enqueued(tasks.fail)


def test_job_that_cannot_be_decoded_is_no_obstacle(workqueue):
    """A row that somebody spoilt matches no arguments, and is listed as it is."""
    tasks.note.enqueue("one")
    Job.objects.update(args="[spoilt")

    workqueue.assert_enqueued(tasks.note)
    with pytest.raises(AssertionError, match=r"args=\[spoilt,"):
        workqueue.assert_enqueued(tasks.note, args=["one"])


def test_misspelt_criterion_is_refused(workqueue):
    """A criterion that is ignored would make every assertion pass."""
    with pytest.raises(TypeError, match="tennant"):
        workqueue.assert_enqueued(tasks.note, tennant="acme")
