"""The numbers for monitors: complete, cheap, and shown to those alone who may see them."""

from __future__ import annotations

import json
import sys

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from django_workqueue import metrics, views
from django_workqueue.checks import check_settings
from django_workqueue.lifecycle.snapshot import quantile
from tests import scoping
from tests.factories import (
    DeadLetterFactory,
    JobFactory,
    QueueFactory,
    QueueMinuteFactory,
    WorkerFactory,
    ago,
)

pytestmark = pytest.mark.django_db

TOKEN = "a token of some length"
ADDRESSES = ("/workqueue/metrics", "/workqueue/metrics.json")


@pytest.fixture
def token(settings):
    """Set the token, and return the header that sends it."""
    settings.WORKQUEUE = {"METRICS_TOKEN": TOKEN}
    return {"authorization": f"Bearer {TOKEN}"}


def scraped(client, headers):
    """Return the value of every sample as Prometheus reads it, by name and labels."""
    response = client.get("/workqueue/metrics", headers=headers)
    assert response.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(response.content.decode())
        for sample in family.samples
    }


# -- what is told ------------------------------------------------------------------------------------------------------


def test_prometheus_is_told_of_queues_tasks_and_workers(client, token):
    """Depth never stands without age."""
    JobFactory.create_batch(2, ready_at=ago(minutes=2))
    DeadLetterFactory()
    QueueFactory(name="mail", done=7, paused=True)
    WorkerFactory(queues="default", slots=8, running=3, memory_bytes=1000)
    QueueMinuteFactory(done=3, failed=1, wait_histogram="0,0,4", run_histogram="1,1,1,1")

    found = scraped(client, token)

    def value(name, *labels):
        return found[f"django_workqueue_{name}", frozenset(labels)]

    task = ("default", "shop.tasks.send_receipt")
    assert (value("jobs", "default", "ready"), value("jobs", "default", "dead")) == (2, 1)
    assert value("oldest_ready_age_seconds", "default") == pytest.approx(120, abs=60)
    assert (value("queue_workers", "default"), value("queue_unserved", "default")) == (1, 0)
    assert (value("done_total", "mail"), value("queue_paused", "mail")) == (7, 1)
    assert (value("task_recent_done", *task), value("task_recent_failed", *task)) == (3, 1)
    assert value("task_recent_wait_seconds", *task, "0.95") == 0.004
    assert value("task_recent_run_seconds", *task, "0.5") == 0.002
    assert (value("worker_processes"), value("worker_running")) == (1, 3)


def test_json_tells_the_same_numbers(client, token):
    """For those without Prometheus."""
    JobFactory.create_batch(2)
    QueueMinuteFactory(done=3)
    WorkerFactory()

    found = json.loads(client.get("/workqueue/metrics.json", headers=token).content)

    [queue], [task] = found["queues"], found["tasks"]
    assert (queue["queue"], queue["ready"], queue["unserved"]) == ("default", 2, False)
    assert (task["done"], task["wait_seconds"]["0.5"]) == (3, None)
    assert found["workers"]["processes"] == 1


def test_rollups_of_all_workers_are_added_up_and_old_ones_left_out():
    """Each worker has rows of its own."""
    QueueMinuteFactory(done=1, wait_histogram="1")
    QueueMinuteFactory(done=2, wait_histogram="0,0,2")
    QueueMinuteFactory(done=50, minute=ago(hours=1))

    [task] = metrics.as_json()["tasks"]

    assert (task["done"], task["wait_seconds"]) == (3, {"0.5": 0.004, "0.95": 0.004, "0.99": 0.004})


def test_quantile_is_the_upper_end_of_its_bucket():
    """The first bucket is what took less than a millisecond."""
    assert quantile([5, 0, 0], 0.5) == 0.001
    assert quantile([1, 0, 1], 0.5) == 0.001
    assert quantile([1, 0, 1], 0.95) == 0.004
    assert quantile([], 0.5) is None
    assert quantile([0, 0], 0.5) is None


def test_collector_joins_a_registry_of_the_project():
    """It reads nothing before it is asked."""
    registry = CollectorRegistry()

    with CaptureQueriesContext(connection) as caught:
        registry.register(metrics.QueueCollector())
    assert not caught.captured_queries

    assert registry.get_sample_value("django_workqueue_worker_processes") == 0


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.mark.postgresql
def test_number_of_statements_is_fixed():
    """Seventeen, whatever there is; four of them begin and end the reading."""

    def statements():
        with CaptureQueriesContext(connection) as caught:
            metrics.as_json()
        return len(caught)

    few = statements()
    for queue in ("default", "mail", "reports", "video"):
        JobFactory.create_batch(5, queue=queue)
        JobFactory.create_batch(2, queue=queue, tenant="acme", priority=3)
        JobFactory(queue=queue, leased=True)
        DeadLetterFactory(queue=queue)
        QueueMinuteFactory.create_batch(3, queue=queue)
    WorkerFactory.create_batch(3)

    assert statements() == few <= 17


def test_rollups_are_read_up_to_a_bound(monkeypatch):
    """A fleet that runs thousands of tasks must not fill the memory of a web process."""
    monkeypatch.setattr("django_workqueue.lifecycle.snapshot.MOST_ROLLUPS", 2)
    QueueMinuteFactory.create_batch(5)

    assert metrics.as_json()["tasks"][0]["done"] == 2


# -- who is told -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ADDRESSES)
def test_stranger_is_told_nothing(client, token, address):
    """Without the token, with another, or with part of it."""
    for headers in (
        {},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": TOKEN},
    ):
        response = client.get(address, headers=headers)
        assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("given", ["Bearer", "Bearer ", "Bearer None", "Bearer \xe9"])
def test_without_a_token_in_the_settings_none_is_right(client, given):
    """The default lets in staff alone."""
    assert client.get(ADDRESSES[1], headers={"authorization": given}).status_code == 401


@pytest.mark.parametrize("address", ADDRESSES)
def test_staff_needs_the_permission_to_see_queues(client, address):
    """As in the admin."""
    user = User.objects.create_user("vera", is_staff=True)
    client.force_login(user)
    assert client.get(address).status_code == 401

    user.user_permissions.add(Permission.objects.get(codename="view_queue"))
    assert client.get(address).status_code == 200

    User.objects.update(is_staff=False)
    assert client.get(address).status_code == 401


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("granted", [["acme"], [], OSError("no directory")], ids=["some", "none", "error"])
def test_numbers_of_all_tenants_are_not_for_who_may_see_some(client, settings, token, address, granted):
    """They tell how much the others do. A monitor's token is not a person's."""
    settings.WORKQUEUE |= scoping.SETTING
    scoping.grants["vera"] = granted
    user = User.objects.create_user("vera", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_queue"))
    client.force_login(user)

    assert client.get(address).status_code == 401
    assert client.get(address, headers=token).status_code == 200
    scoping.grants["vera"] = None
    assert client.get(address).status_code == 200


@pytest.mark.parametrize("address", ADDRESSES)
def test_answers_are_not_kept_and_nothing_is_changed(client, token, address):
    """Stale numbers wake nobody; only reading methods are answered."""
    assert "no-store" in client.get(address, headers=token)["Cache-Control"]
    assert client.head(address, headers=token).status_code == 200
    assert client.post(address, headers=token).status_code == 405


def test_missing_client_is_told_with_its_remedy(client, token, monkeypatch):
    """The numbers as JSON need no package."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    response = client.get(ADDRESSES[0], headers=token)

    assert (response.status_code, b"django-workqueue[prometheus]" in response.content) == (501, True)
    assert client.get(ADDRESSES[1], headers=token).status_code == 200
    with pytest.raises(ImproperlyConfigured, match="prometheus_client is not installed"):
        metrics.QueueCollector()


def test_database_that_is_away_is_told_without_its_words(client, token, monkeypatch):
    """An error of the database may name hosts and users."""

    def away(**_given):
        raise OperationalError("connection to db7 refused")

    monkeypatch.setattr(views, "as_json", away)

    response = client.get(ADDRESSES[1], headers=token)

    assert (response.status_code, b"db7" in response.content) == (503, False)


@pytest.mark.parametrize("value", ["short", "", 17, "sixteen chars and\x07"])
def test_token_that_is_none_is_refused_without_being_quoted(settings, value):
    """The output of ``check`` ends in the logs of a deployment."""
    settings.WORKQUEUE = {"METRICS_TOKEN": value}

    [message] = check_settings()

    assert "METRICS_TOKEN" in message.msg
    assert "at least 16 characters" in message.msg
    assert message.hint == "Its value is not shown."
