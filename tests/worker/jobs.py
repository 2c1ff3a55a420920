"""Claimed jobs and settlements for the worker's parts, without a database; and waiting for what other threads do."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from threading import Thread

from django.utils import timezone

from django_workqueue.domain.ids import new_id
from django_workqueue.domain.outcomes import ClaimedJob, Settlement
from tests.claims import failed, succeeded

PATIENCE_SECONDS = 30


def job(lease_id: int = 1, **columns) -> ClaimedJob:
    """Return a claimed job of ``tests.samples.add``."""
    values = {
        "id": new_id(),
        "queue": "default",
        "tenant": "",
        "task": "tests.samples.add",
        "args": "[1,2]",
        "kwargs": "{}",
        "priority": 0,
        "ready_at": timezone.now() - timedelta(seconds=2),
        "attempts": 1,
        "max_attempts": 5,
        "metadata": "{}",
        "last_error": "",
        "enqueued_at": timezone.now(),
        "lapses": 0,
        "dedupe_key": None,
        "workflow": None,
        "lease_id": lease_id,
    }
    return ClaimedJob(**values | columns)


def done(one: ClaimedJob) -> Settlement:
    """Return the settlement of a job that went well."""
    return succeeded(one)


def broken(one: ClaimedJob) -> Settlement:
    """Return the settlement of a job that failed."""
    return failed(one)


def wait_until(condition: Callable[[], object], what: str = "") -> None:
    """Wait for a state that another thread brings about; fail when it does not."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, f"It did not come about in {PATIENCE_SECONDS} s: {what or condition}"
        time.sleep(0.002)


@contextmanager
def running(thread: Thread, end: Callable[[], None]):
    """Run a thread for the block; ``end`` is called at its end, and the thread must end then."""
    thread.start()
    try:
        yield thread
    finally:
        end()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
