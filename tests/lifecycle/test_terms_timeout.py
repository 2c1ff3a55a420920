"""How long an attempt may run: by its task, or by its queue."""

from __future__ import annotations

import pytest

from django_workqueue.lifecycle.terms import terms_of
from tests import endless, samples


@pytest.mark.parametrize(
    ("workqueue", "own", "none"),
    [
        ({}, 0.2, None),
        ({"TIMEOUT": 60}, 0.2, 60),
        ({"TIMEOUT": 60, "QUEUES": {"mail": {"TIMEOUT": 5}}}, 0.2, 5),
        ({"TIMEOUT": 60, "QUEUES": {"mail": {"TIMEOUT": None}}}, 0.2, None),
    ],
)
def test_task_goes_before_its_queue(settings, workqueue, own, none):
    """And a queue before the defaults, also to have no limit."""
    settings.WORKQUEUE = workqueue

    assert terms_of(endless.compute.module_path, "mail").timeout == own
    assert terms_of(samples.add.module_path, "mail").timeout == none
