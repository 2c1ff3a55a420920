"""What came of an attempt, as plain values."""

from __future__ import annotations

import pickle

import pytest

from django_workqueue.domain.outcomes import ClaimedJob, Failed, Retry, Succeeded
from django_workqueue.domain.states import FailureKind


@pytest.mark.parametrize(
    ("failed", "summary"),
    [
        (Failed(kind=FailureKind.ERROR, error_class="shop.errors.OutOfPaper", message="tray 2"), "OutOfPaper: tray 2"),
        (Failed(kind=FailureKind.ERROR, error_class="builtins.KeyError"), "KeyError"),
        (Failed(kind=FailureKind.LAPSED, message="Worker lost."), "lapsed: Worker lost."),
        (Failed(kind=FailureKind.TIMEOUT), "timeout"),
    ],
)
def test_summary_is_the_class_and_the_message(failed, summary):
    """What the next attempt, and a list in the admin, is told."""
    assert failed.summary == summary


def test_outcomes_cross_processes():
    """Only text and numbers: nothing that cannot be rebuilt elsewhere (celery/celery#6990)."""
    job = ClaimedJob(**dict.fromkeys(ClaimedJob._fields))

    for value in (job, Succeeded("null", 1.0), Failed(kind=FailureKind.ERROR, message="x"), Retry(delay=None)):
        assert pickle.loads(pickle.dumps(value)) == value
