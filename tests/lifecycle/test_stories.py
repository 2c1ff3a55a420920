"""The trace across jobs: what a job enqueues belongs to the story that the job belongs to."""

from __future__ import annotations

import contextvars
import json
import logging

import pytest
from asgiref.sync import sync_to_async

from django_workqueue import correlation_id, task, traceparent
from django_workqueue.domain.trace import captured_trace
from django_workqueue.lifecycle.events import job_fields
from django_workqueue.models import FinishedJob, Job
from django_workqueue.testing import ThreadedWorker, drain
from tests import samples
from tests.claims import claim_one

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
KINDS = pytest.mark.parametrize("kind", ["function", "coroutine", "thread of a coroutine"])


@task
def tell(word):
    """Return the trace that holds here."""
    return [word, correlation_id.get(), traceparent.get()]


@task
def pass_on(words):
    """Enqueue the next job of a chain that the body knows."""
    _enqueue_next(words)


@task
async def pass_on_async(words):
    """Enqueue it from the event loop."""
    await _next(words).aenqueue(*_arguments(words))


@task
async def pass_on_in_thread(words):
    """Enqueue it from a thread of the coroutine's."""
    await sync_to_async(_enqueue_next)(words)


PASSING = {"function": pass_on, "coroutine": pass_on_async, "thread of a coroutine": pass_on_in_thread}


def _next(words):
    return PASSING.get(words[0], tell)


def _arguments(words):
    return [words[1:] if words[0] in PASSING else words[0]]


def _enqueue_next(words):
    _next(words).enqueue(*_arguments(words))


def request(one, *arguments, correlation=None, parent=None):
    """Enqueue in a context of its own, where these are set."""

    def handle():
        correlation_id.set(correlation)
        traceparent.set(parent)
        return one.enqueue(*arguments)

    return contextvars.Context().run(handle)


@pytest.mark.django_db
@KINDS
def test_story_goes_through_all_generations(kind):
    """From the request to the job of a job of a job (the next step of a chain lost it elsewhere)."""
    request(PASSING[kind], [kind, "end"], correlation="req-1", parent=PARENT)

    assert drain()[-1].result == ["end", "req-1", PARENT]


@pytest.mark.django_db
@KINDS
def test_job_of_nobodys_request_begins_a_story(kind):
    """Its own id ties together whatever comes of it, and is known in its own run too."""
    root = request(PASSING[kind], [kind, "end"])
    alone = request(tell, "alone")

    results = [attempt.result for attempt in drain()]

    assert ["alone", alone.id, None] in results
    assert results[-1] == ["end", root.id, None]


@pytest.mark.django_db(transaction=True)
@KINDS
def test_stories_do_not_mix_in_a_worker(kind):
    """Many at once, in two slots and one event loop."""
    for number in range(5):
        request(PASSING[kind], [kind, "end"], correlation=f"req-{number}")

    with ThreadedWorker() as worker:
        worker.settle()

    told = [json.loads(job.result) for job in FinishedJob.objects.filter(task=tell.module_path)]
    assert sorted(story for _, story, _ in told) == [f"req-{number}" for number in range(5)]
    assert captured_trace() == {}


@pytest.mark.django_db
def test_retry_belongs_to_the_same_story():
    """An attempt is no new job."""
    request(samples.fail, correlation="req-1")
    drain(raise_errors=False)

    assert Job.objects.get().decoded_metadata == {"correlation_id": "req-1"}


@pytest.mark.django_db
@pytest.mark.parametrize("correlation", ["req-1", None])
def test_log_records_have_the_correlation_id(store, caplog, correlation):
    """A search for it finds every attempt of every job of the request."""
    result = request(samples.fail, correlation=correlation)

    with caplog.at_level(logging.DEBUG, logger="django_workqueue"):
        drain(raise_errors=False)

    told = [record for record in caplog.records if getattr(record, "job_id", "") == result.id]
    assert {record.name for record in told} == {"django_workqueue.run", "django_workqueue.settle"}
    assert {record.correlation_id for record in told} == {correlation or result.id}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("one", [samples.add, samples.add_async], ids=["function", "coroutine"])
def test_start_is_logged_in_a_worker(caplog, one):
    """Of a coroutine as of a function, whether or not anybody listens to the signal."""
    with caplog.at_level(logging.DEBUG, logger="django_workqueue.run"):
        result = request(one, 1, 2, correlation="req-1")
        with ThreadedWorker() as worker:
            worker.settle()

    [record] = [each for each in caplog.records if each.name == "django_workqueue.run"]
    assert (record.job_id, record.correlation_id) == (result.id, "req-1")
    assert record.getMessage().endswith("starts.")


@pytest.mark.django_db
@pytest.mark.parametrize("metadata", ["", "{broken", "[]", '{"correlation_id": 7}'])
def test_record_about_a_damaged_row_can_be_written(store, metadata):
    """It is the record that tells of the damage."""
    result = samples.add.enqueue(1, 2)
    Job.objects.update(metadata=metadata)

    assert job_fields(claim_one(store))["correlation_id"] == result.id
