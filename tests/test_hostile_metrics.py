"""The numbers for monitors keep their form, whatever the queues and tasks are called."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.hostile import PAYLOADS, make_all

pytestmark = pytest.mark.django_db

TOKEN = "a token of some length"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_labels_come_back_as_they_were_stored(client, settings, payload):
    """A name that ends its line, or its quotes, must not become a number of its own."""
    settings.WORKQUEUE = {"METRICS_TOKEN": TOKEN, "MASK": ["*"]}
    rows = make_all(PAYLOADS[payload])
    headers = {"authorization": f"Bearer {TOKEN}"}

    scraped = client.get("/workqueue/metrics", headers=headers).content.decode()
    told = client.get("/workqueue/metrics.json", headers=headers)

    names = {
        sample.labels.get("queue") for family in text_string_to_metric_families(scraped) for sample in family.samples
    }
    assert rows["queue"].pk in names
    assert rows["queue"].pk in {queue["queue"] for queue in told.json()["queues"]}
    assert told["Content-Type"] == "application/json"
    assert rows["queueminute"].task in {task["task"] for task in told.json()["tasks"]}
