"""docs/reference/metrics.md lists the metrics that there are."""

from __future__ import annotations

import pytest

from django_workqueue.metrics import STATES, metrics

from .pages import rows, section

PAGE = "docs/reference/metrics.md"


@pytest.mark.django_db
def test_every_metric_is_documented():
    """With its kind, in the order in which they are told."""
    tables = [rows(section(PAGE, heading)) for heading in ("Of queues", "Of tasks", "Of workers")]
    documented = [(name, kind) for table in tables for name, kind, _ in table]

    assert documented == [(metric.name, metric.kind) for metric in metrics()]


def test_every_state_is_documented():
    """The label's values are on the page."""
    assert all(state in section(PAGE, "Of queues") for state in STATES)
