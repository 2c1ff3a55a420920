"""Running jobs now and moving them, from their list and from the page of one."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import CHANGE, LogEntry

from django_workqueue.models import FinishedJob, Job
from django_workqueue.testing import drain
from tests.admin.conftest import VIEWS
from tests.admin.pages import Elements, page, told
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db

OPERATIONS = ("run_now", "move")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("django_workqueue.admin.bulk.PAUSE", 0)


@pytest.fixture
def planner(browser):
    """Return the browser of someone who may look at everything and change when and where jobs run."""
    return browser(*VIEWS, "reschedule_job")


def act(client, name, *jobs, **more):
    """Run an action of the list on ``jobs``; ``confirmed="yes"`` answers the question."""
    return client.post(page("job"), {"action": name, "_selected_action": [job.pk for job in jobs], **more})


def log():
    """Return what the log says: on which object, what kind of change, in which words."""
    return list(LogEntry.objects.order_by("id").values_list("object_id", "action_flag", "change_message"))


def links(response):
    """Return where the links of a page lead."""
    return [attributes.get("href") for tag, attributes in Elements(response).found if tag == "a"]


def test_selected_scheduled_jobs_run_now(planner):
    """Those that are not scheduled are told, and left as they are."""
    scheduled, ready = JobFactory(scheduled=True), JobFactory()

    response = act(planner, "run_now", scheduled, ready, confirmed="yes")

    first, second = told(response)
    assert first == "1 job is due now."
    assert "1 job was left as it is." in second
    assert str(ready.pk) in second
    assert Job.objects.get(pk=scheduled.pk).state == "ready"
    assert log() == [(str(scheduled.pk), CHANGE, "Made due at once.")]


def test_selected_jobs_move(planner):
    """To another queue, before others, or both; the log tells where to and why."""
    waits, held = JobFactory(), JobFactory(leased=True)
    answer = {"confirmed": "yes", "queue": "slow", "priority": "7", "reason": "mail is full"}

    act(planner, "move", waits, held, **answer)

    moved, kept = Job.objects.get(pk=waits.pk), Job.objects.get(pk=held.pk)
    assert (moved.queue, moved.priority) == ("slow", 7)
    assert (kept.queue, kept.priority) == ("default", 0)
    words = "Moved. To the queue: slow. Priority: 7. Reason: mail is full."
    assert log() == [(str(waits.pk), CHANGE, words)]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({}, "Name a queue or a priority."),
        ({"priority": "101"}, "less than or equal to 100"),
        ({"queue": "a" * 101}, "at most 100 characters"),
        ({"queue": "a\tb"}, "control characters"),
    ],
)
def test_what_cannot_be_is_asked_again(planner, answer, problem):
    """Nothing has moved by then."""
    job = JobFactory()

    response = act(planner, "move", job, confirmed="yes", **answer)

    assert problem in response.content.decode()
    assert log() == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_action_and_page_ask_before_they_act(planner, name):
    """GET and the first POST of an action change nothing."""
    job = JobFactory(scheduled=True)
    address = page("job", job.pk, name=name)
    assert address in links(planner.get(page("job", job.pk)))

    assert b"1 job is selected" in act(planner, name, job, index=0).content
    assert b"1 job is selected" in planner.get(address).content

    stored = Job.objects.get()
    assert (stored.state, stored.queue, stored.priority) == ("scheduled", "default", 0)
    assert log() == []


def test_page_of_one_job_moves_it(planner):
    """The form shows where it is now."""
    job = JobFactory(queue="mail", priority=3)
    address = page("job", job.pk, name="move")

    fields = {
        attributes.get("name"): attributes.get("value") for _tag, attributes in Elements(planner.get(address)).found
    }
    assert (fields["queue"], fields["priority"]) == ("mail", "3")
    planner.post(address, {"queue": "slow"})

    assert (Job.objects.get().queue, Job.objects.get().priority) == ("slow", 3)


def test_only_what_applies_is_offered(planner):
    """A job that a worker holds can be neither moved nor hurried; one that is ready needs no hurry."""
    held, ready = JobFactory(leased=True), JobFactory()

    assert not {page("job", held.pk, name=name) for name in OPERATIONS} & set(links(planner.get(page("job", held.pk))))
    offered = links(planner.get(page("job", ready.pk)))
    assert page("job", ready.pk, name="move") in offered
    assert page("job", ready.pk, name="run_now") not in offered


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("permissions", [(), ("cancel_job",)])
def test_every_door_asks_for_the_permission(browser, name, permissions):
    """Actions, pages of one, pages of all: each checks by itself; the permission to cancel is another."""
    client, job = browser(*VIEWS, *permissions), JobFactory(scheduled=True)

    act(client, name, job, confirmed="yes", priority="5")
    for door in (page("job", job.pk, name=name), page("job", name=f"all_{name}")):
        assert client.get(door).status_code == 403
        assert client.post(door, {"priority": "5"}).status_code == 403

    stored = Job.objects.get()
    assert (stored.state, stored.priority) == ("scheduled", 0)
    assert not [link for link in links(client.get(page("job"))) if link and f"/{name}/" in link]
    assert log() == []


def test_all_that_match_move_by_a_job_where_they_are_many(planner):
    """Page after page is handled in the background; the job that does it is not among what it moves."""
    JobFactory.create_batch(120, tenant="acme", scheduled=True)
    JobFactory(scheduled=True)

    planner.post(page("job", name="all_move", query="?q=tenant:acme"), {"priority": "9"})
    job = Job.objects.get(task="django_workqueue.admin.bulk.decide")
    planner.post(page("job", name="all_move"), {"priority": "5"})
    drain("default", max_jobs=1)

    assert json.loads(FinishedJob.objects.get(pk=job.pk).result)["done"] == 120
    assert Job.objects.filter(priority=9, tenant="acme").count() == 120


def test_job_that_moves_all_leaves_itself_alone(planner):
    """It would refuse itself, and be told among the problems."""
    JobFactory.create_batch(120, scheduled=True)

    planner.post(page("job", name="all_move"), {"queue": "slow"})
    drain("default", max_jobs=1)

    result = json.loads(FinishedJob.objects.get().result)
    assert (result["done"], result["left_as_they_are"]) == (120, 0)
