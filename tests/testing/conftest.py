"""The fixtures of the plugin, also where it is not installed, and what each test of the helpers begins with."""

from __future__ import annotations

import pytest

from django_workqueue.testing.pytest_plugin import workqueue, workqueue_worker

from . import sample_tasks

__all__ = ["workqueue", "workqueue_worker"]


@pytest.fixture
def done():
    """Return the list of what bodies did, empty at first."""
    sample_tasks.done.clear()
    return sample_tasks.done
