"""pytest fixtures of the queue. Imports nothing of Django: it is loaded before the settings are."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .worker_thread import ThreadedWorker

# The suite of guarantees asserts in plain words; pytest shows the values only where it has rewritten the module.
pytest.register_assert_rewrite("django_workqueue.testing.conformance")


@pytest.fixture
def workqueue() -> ModuleType:
    """
    Return ``django_workqueue.testing``: drain, enqueued, assert_enqueued, assert_not_enqueued, advance.

    What a DummyBackend remembers of earlier tests is forgotten. The test must be allowed to use the database
    (``@pytest.mark.django_db``), unless all its backends are dummies.
    """
    from django_workqueue import testing  # noqa: PLC0415 - see the module's docstring
    from django_workqueue.domain.contract import task_backends  # noqa: PLC0415

    for backend in task_backends.all():
        if isinstance(backend, testing.DummyBackend):
            backend.clear()
    return testing


@pytest.fixture
def workqueue_worker(transactional_db: None) -> Iterator[ThreadedWorker]:  # noqa: ARG001 - what the test writes is committed
    """
    Run a worker in a thread, on all queues, and stop it at the end. The test is one that commits.

    ``workqueue_worker.settle()`` waits until the jobs that are ready have ended.
    """
    from .worker_thread import ThreadedWorker  # noqa: PLC0415 - see the module's docstring

    with ThreadedWorker() as worker:
        yield worker
