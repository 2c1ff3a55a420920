"""A whole worker in a thread of the test's process, for tests that commit."""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.models import Q

from ..domain.states import JobState
from ..models import Job
from ..store import store_for
from ..worker.options import WorkerOptions
from ..worker.process import EXIT_CLEAN, WorkerProcess
from ..worker.thread import WorkerThread

POLL_INTERVAL = timedelta(milliseconds=100)
PATIENCE_SECONDS = 30.0


class ThreadedWorker(WorkerThread):
    """
    A worker with all its threads, on connections of their own: it sees what is committed, and nothing else.

    Use it as a context manager; the options are those of ``WorkerOptions``, with a short poll interval. Not for a
    ``TestCase``, whose transaction is never committed: there, ``drain`` runs the jobs.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("test", lambda: None)
        defaults: dict[str, Any] = {"concurrency": 2, "poll_interval": POLL_INTERVAL}
        self._options = WorkerOptions(**defaults | options)
        self._process = WorkerProcess(self._options)
        self._exit_code: int | None = None

    @property
    def id(self) -> str:
        """The worker's id, as in leases and results."""
        return self._process.id

    def work(self) -> None:
        """Run the worker until it is stopped."""
        self._exit_code = self._process.run()

    def __enter__(self) -> Self:
        _refuse_unsharable(self._options.database)
        self.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def settle(self, timeout: float = PATIENCE_SECONDS) -> None:
        """
        Wait until nothing is ready, due or running. Jobs that wait for their time are not waited for.

        Raises TimeoutError after ``timeout`` seconds, naming what is left.
        """
        deadline = time.monotonic() + timeout
        while left := self._unsettled():
            if time.monotonic() > deadline:
                raise TimeoutError(f"After {timeout:g} s these jobs are not settled: {', '.join(map(str, left))}.")
            if not self.is_alive():
                raise RuntimeError(f"The worker ended with exit code {self._exit_code}; see the log.")
            time.sleep(0.01)

    def _unsettled(self) -> list[Job]:
        store = store_for(self._options.database)
        is_due = Q(state=JobState.SCHEDULED, ready_at__lte=store.now())
        return list(Job.objects.using(store.alias).filter(Q(state__in=(JobState.READY, JobState.LEASED)) | is_due)[:20])

    def stop(self, timeout: float = PATIENCE_SECONDS) -> None:
        """
        Stop the worker, letting running jobs end, and wait until its connections are closed.

        Raises RuntimeError when it crashed, or when a job did not end within ``timeout`` seconds.
        """
        self._process.stop.request()
        self.join(timeout)
        if self.is_alive():
            # The second request does not wait for jobs.
            self._process.stop.request()
            self.join(timeout)
        deadline = time.monotonic() + timeout
        while self._process.is_busy and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._exit_code != EXIT_CLEAN or self._process.is_busy:
            raise RuntimeError(f"The worker ended with exit code {self._exit_code}; see the log.")


def _refuse_unsharable(alias: str) -> None:
    connection = connections[alias]
    if connection.in_atomic_block:
        raise RuntimeError(
            "A worker cannot see what this test has not committed. Use a TransactionTestCase or "
            "django_db(transaction=True), or run the jobs by drain()."
        )
    is_in_memory = getattr(connection, "is_in_memory_db", lambda: False)
    if is_in_memory():
        raise ImproperlyConfigured(
            f"The test database {alias!r} is in memory, where threads lock each other out. Give it a file: "
            f"DATABASES[{alias!r}]['TEST'] = {{'NAME': BASE_DIR / 'test.sqlite3'}}."
        )
