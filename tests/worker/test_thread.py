"""The worker's threads, their backoff, and what they log of failures."""

from __future__ import annotations

import logging

import pytest
from django.db import DatabaseError, IntegrityError

from django_workqueue.worker.thread import Backoff, WorkerThread, log_failure

logger = logging.getLogger("django_workqueue.worker")


class Failing(WorkerThread):
    """Dies of what it is given."""

    def __init__(self, error: BaseException, crashes: list[int]) -> None:
        super().__init__("failing", lambda: crashes.append(1))
        self.error = error

    def work(self):
        """Die."""
        raise self.error


@pytest.mark.parametrize("error", [ValueError("a bug"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_escapes_takes_the_process_down(caplog, error):
    """A worker without its reaper must not go on looking alive."""
    crashes: list[int] = []
    thread = Failing(error, crashes)
    with caplog.at_level(logging.CRITICAL):
        thread.start()
        thread.join(30)

    assert crashes == [1]
    assert "workqueue-failing died" in caplog.text


def test_thread_does_not_keep_the_process_alive():
    """A job that cannot be stopped must not keep it from leaving."""
    assert Failing(ValueError(), []).daemon


def test_work_is_for_each_thread_to_say(caplog):
    """There is none by default."""
    with pytest.raises(NotImplementedError):
        WorkerThread("idle", lambda: None).work()


def test_backoff_doubles_to_a_bound_and_begins_anew_after_a_success():
    """Jittered, so that a fleet does not come back as one."""
    backoff = Backoff()
    waits = [backoff.failed() for _ in range(2000)]

    assert 0.05 <= waits[0] <= 0.1
    assert 0.1 <= waits[1] <= 0.2
    assert all(2.5 <= wait <= 5.0 for wait in waits[7:])
    assert len(set(waits[10:])) > 1000
    backoff.worked()
    assert backoff.failed() <= 0.1


@pytest.mark.parametrize(
    ("error", "level"),
    [(DatabaseError("gone"), "WARNING"), (ZeroDivisionError("a bug"), "ERROR"), (ValueError(), "ERROR")],
)
def test_databases_error_is_a_warning_and_any_other_a_fault_of_ours(caplog, error, level):
    """One ends by itself, the other does not."""
    with caplog.at_level(logging.INFO):
        log_failure(logger, error, "A round failed", 0.5)

    [record] = caplog.records
    assert record.levelname == level
    assert "A round failed" in record.getMessage()
    assert type(error).__name__ in record.getMessage()


def test_row_that_failed_is_not_quoted_in_the_log(caplog):
    """It holds the job's arguments."""
    error = IntegrityError("duplicate key value\nDETAIL: Failing row contains (secret).")
    with caplog.at_level(logging.INFO):
        log_failure(logger, error, "A round failed", 0.5)

    assert "duplicate key value" in caplog.text
    assert "secret" not in caplog.text
