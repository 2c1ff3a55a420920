"""Errors state the fact, quote the value and name the remedy; facts are attributes too."""

from __future__ import annotations

import inspect
import pickle
import uuid
from datetime import timedelta

import pytest

from django_workqueue import exceptions
from django_workqueue.exceptions import (
    DuplicateJobError,
    JobNotFoundError,
    LeaseLostError,
    PayloadTooLargeError,
    QueueUnavailableError,
    RetryAfter,
    TaskNotRegisteredError,
    WorkQueueError,
)

ERRORS = [
    each
    for _, each in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(each, Exception) and each.__module__ == exceptions.__name__
]
JOB = uuid.UUID(int=1)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_error_is_drawn_in_the_tree(error):
    """The module's docstring shows them all."""
    assert error.__name__ in exceptions.__doc__


@pytest.mark.parametrize(
    ("reason", "words"),
    [("expired", "not renewed in time"), ("taken", "another worker holds the job"), ("capped", "MAX_LEASE")],
)
def test_lost_lease_tells_why(reason, words):
    """And who holds the job now, where somebody does."""
    error = LeaseLostError(7, reason, job_id=JOB, holder="web2:1")

    assert words in str(error)
    assert "web2:1" in str(error)
    assert (error.lease_id, error.reason, error.job_id, error.holder) == (7, reason, JOB, "web2:1")


@pytest.mark.parametrize("error", [LeaseLostError, JobNotFoundError, DuplicateJobError, PayloadTooLargeError])
def test_what_cannot_get_better_is_not_retryable(error):
    """A task that lets it escape is not tried again."""
    assert error.retryable is False


@pytest.mark.parametrize("error", [WorkQueueError, QueueUnavailableError, TaskNotRegisteredError])
def test_what_may_get_better_is_retryable(error):
    """The database comes back, a deploy ends."""
    assert error.retryable is True


def test_missing_job_is_named():
    """It is the same words for a job that is not there and for one that is not yours."""
    assert str(JobNotFoundError(JOB)) == f"There is no job '{JOB}' here."


def test_delay_of_a_retry_is_seconds_or_a_timedelta():
    """And never negative."""
    assert RetryAfter(90).delay == RetryAfter(timedelta(seconds=90)).delay == timedelta(seconds=90)
    assert str(RetryAfter(1.5)) == "Try again in 1.5 s."
    assert str(RetryAfter(1, "busy")) == "busy"


@pytest.mark.parametrize("delay", [-1, timedelta(seconds=-1), timedelta.max, 1e11])
def test_delay_that_no_clock_can_keep_is_refused(delay):
    """In the task's own traceback, where its author finds it."""
    with pytest.raises(ValueError, match="RetryAfter"):
        RetryAfter(delay)


@pytest.mark.parametrize("signal", [exceptions.Reject, RetryAfter])
def test_steering_signals_are_no_faults_of_the_package(signal):
    """Whoever catches our errors does not catch what a task means to say."""
    assert not issubclass(signal, WorkQueueError)


def test_message_of_an_error_survives_pickling():
    """Errors cross processes in projects that use them there."""
    error = pickle.loads(pickle.dumps(WorkQueueError("no")))

    assert str(error) == "no"
