"""Enqueueing copies from the screens of finished jobs and dead letters."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import ADDITION, LogEntry

from django_workqueue.models import FinishedJob, Job
from django_workqueue.testing import drain
from tests.admin.conftest import VIEWS
from tests.admin.pages import Elements, page, told
from tests.factories import DeadLetterFactory, FinishedJobFactory

pytestmark = pytest.mark.django_db

ADD = {"task": "tests.samples.add", "args": "[1,2]", "kwargs": "{}"}
PLACES = {"finishedjob": FinishedJobFactory, "deadletter": DeadLetterFactory}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("django_workqueue.admin.bulk.PAUSE", 0)


@pytest.fixture
def copier(browser):
    """Return the browser of someone who may look at everything and enqueue copies."""
    return browser(*VIEWS, "copy_finishedjob", "copy_deadletter")


def hidden(response):
    """Return the hidden fields of a page's form."""
    fields = [attributes for tag, attributes in Elements(response).found if tag == "input"]
    return {each["name"]: each["value"] for each in fields if each.get("type") == "hidden" and "value" in each}


@pytest.mark.parametrize("model", PLACES)
def test_selected_jobs_are_copied_and_stay(copier, model):
    """Each has its entry in the log."""
    over = PLACES[model](**ADD)
    data = {"action": "copy", "_selected_action": over.pk, "confirmed": "yes", "reason": "asked for"}

    response = copier.post(page(model), data)

    assert told(response) == ["1 copy was enqueued."]
    assert json.loads(Job.objects.get().metadata)["_copy_of"] == str(over.pk)
    assert type(over).objects.filter(pk=over.pk).exists()
    words = "Enqueued a copy. Reason: asked for."
    assert list(LogEntry.objects.values_list("action_flag", "change_message")) == [(ADDITION, words)]


@pytest.mark.parametrize("model", PLACES)
def test_page_that_is_sent_twice_makes_one_copy(copier, model):
    """A double click, or a reload of the answer, does not do the work twice; a second decision does."""
    over = PLACES[model](**ADD)
    address = page(model, over.pk, name="copy")
    answer = hidden(copier.get(address))

    copier.post(address, answer)
    again = copier.post(address, answer)

    assert "1 job was not copied." in told(again)[-1]
    assert Job.objects.count() == 1
    copier.post(address, hidden(copier.get(address)))
    assert Job.objects.count() == 2


@pytest.mark.parametrize("model", PLACES)
def test_who_may_only_look_cannot_copy(viewer, model):
    """Neither by the action nor by a page."""
    over = PLACES[model](**ADD)

    viewer.post(page(model), {"action": "copy", "_selected_action": over.pk, "confirmed": "yes"})
    for door in (page(model, over.pk, name="copy"), page(model, name="all_copy")):
        assert viewer.get(door).status_code == 403
        assert viewer.post(door).status_code == 403

    assert not Job.objects.exists()


def test_all_that_match_are_copied_once_also_when_the_job_is_delivered_again(copier):
    """A worker may die between the copies and the end of the job that makes them."""
    FinishedJobFactory.create_batch(120, **ADD, tenant="acme")
    FinishedJobFactory(**ADD)
    address = page("finishedjob", name="all_copy", query="?q=tenant:acme")

    copier.post(address, hidden(copier.get(address)))
    first = Job.objects.get(task="django_workqueue.admin.bulk.decide")
    options = json.loads(first.kwargs)["options"]
    drain("default", max_jobs=1)
    copier.post(address, {"seed": options["seed"]})
    second = Job.objects.get(task="django_workqueue.admin.bulk.decide")
    drain("default", max_jobs=1)

    done = {str(each.pk): json.loads(each.result) for each in FinishedJob.objects.filter(task=second.task)}
    assert (done[str(first.pk)]["done"], done[str(second.pk)]["done"]) == (120, 0)
    assert done[str(second.pk)]["left_as_they_are"] == 120
    assert Job.objects.filter(task="tests.samples.add").count() == 120
