"""The failed attempts on the page of a job."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_workqueue.admin import failures
from django_workqueue.admin.words import TEXT_LIMIT
from django_workqueue.domain.masking import Veil
from tests.admin.pages import page, statements
from tests.factories import DeadLetterFactory, FailureFactory, FinishedJobFactory, JobFactory

pytestmark = pytest.mark.django_db


def attempts(response):
    """Return the numbers of the attempts that a page shows, in order."""
    return [attempt.failure.attempt for attempt in response.context["history"].attempts]


def test_every_attempt_is_shown_in_order(viewer):
    """The last error alone does not tell what changed between the attempts (procrastinate#370)."""
    letter = DeadLetterFactory()
    DeadLetterFactory(failures=2)
    for number, message in enumerate(("no route", "refused", "broken pipe"), 1):
        FailureFactory(job_id=letter.pk, attempt=number, message=message, traceback=f"File {number}")
    FailureFactory(job_id=letter.pk, attempt=4, lapsed=True)

    response = viewer.get(page("deadletter", letter.pk))

    content = response.content.decode()
    assert attempts(response) == [1, 2, 3, 4]
    places = [content.index(text) for text in ("no route", "File 1", "refused", "File 2", "broken pipe", "File 3")]
    assert places == sorted(places)
    assert content.count("<details>") == 3
    assert content.count("Lease lapsed") == 1


@pytest.mark.parametrize(("model", "factory"), [("job", JobFactory), ("finishedjob", FinishedJobFactory)])
def test_history_follows_the_job(viewer, model, factory):
    """A job that waits for its next try, or came through in the end, still shows what went wrong."""
    job = factory()
    FailureFactory(job_id=job.pk)

    assert attempts(viewer.get(page(model, job.pk))) == [1]


def test_job_without_failures_says_so(viewer):
    """An empty table alone would leave it open."""
    assert b"No attempt has failed." in viewer.get(page("job", JobFactory().pk)).content


def test_number_of_attempts_on_a_page_is_bounded(viewer, monkeypatch):
    """A task that may try ten thousand times must not make a page that no browser opens."""
    monkeypatch.setattr(failures, "SHOWN", 3)
    letter = DeadLetterFactory(failures=5)

    response = viewer.get(page("deadletter", letter.pk))

    assert attempts(response) == [3, 4, 5]
    assert b"The first attempts are left out." in response.content


def test_end_of_a_long_traceback_is_kept(viewer):
    """The last line of a traceback is the error itself."""
    letter = DeadLetterFactory(failures=1, failures__traceback="x" * TEXT_LIMIT + "\nValueError: here")

    content = viewer.get(page("deadletter", letter.pk)).content.decode()

    assert "ValueError: here</pre>" in content
    assert "(17 characters left out)" in content


def test_page_takes_a_fixed_number_of_statements(viewer):
    """Attempts are read by one statement, however many they are."""
    few, many = DeadLetterFactory(failures=1), DeadLetterFactory(failures=50)

    for letter in (few, many):
        with CaptureQueriesContext(connection) as captured:
            viewer.get(page("deadletter", letter.pk))
        assert len(statements(captured)) == 9


def test_attempt_tells_how_long_it_ran_and_when_it_comes_back():
    """Whether it failed at once or after an hour is half of the diagnosis."""
    failure = FailureFactory.build()
    failure.started_at = failure.failed_at - timedelta(seconds=90)
    failure.next_try_at = failure.failed_at + timedelta(seconds=30)

    attempt = failures.Attempt(failure, now=failure.failed_at + timedelta(seconds=10), veil=Veil({}))

    assert attempt.ran == "1 min 30 s"
    assert "10 seconds ago" in attempt.failed
    assert "in 20 seconds" in attempt.next_try
