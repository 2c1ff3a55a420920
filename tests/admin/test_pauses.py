"""The screen of pauses."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry

from django_workqueue.domain.states import JobState
from django_workqueue.models import Job, Pause
from tests.admin.conftest import VIEWS
from tests.admin.pages import page, told
from tests.factories import JobFactory, PauseFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def warden(browser):
    """Return the browser of someone who may pause, and look at nothing else."""
    return browser("pause_queue")


def end(client, *pauses):
    """Run the action that ends pauses."""
    data = {"action": "resume", "_selected_action": [pause.pk for pause in pauses], "index": 0}
    return client.post(page("pause"), data)


@pytest.mark.parametrize("kind", ["queue", "tenant", "task"])
def test_pause_is_added_and_ended(warden, kind):
    """Whoever may pause needs no other permission; the log keeps both."""
    response = warden.post(page("pause", name="add"), {"kind": kind, "name": "shop.mail"})

    assert response.status_code == 302
    pause = Pause.objects.get()
    assert (pause.kind, pause.name, pause.paused_by) == (kind, "shop.mail", "vera")
    assert b"shop.mail" in warden.get(page("pause")).content

    assert told(end(warden, pause)) == ["1 pause was ended."]
    assert not Pause.objects.exists()
    assert LogEntry.objects.filter(object_id=str(pause.pk)).count() == 2


def test_end_of_a_tasks_pause_lets_its_parked_jobs_go(warden):
    """The screen does what the operation does, not only remove a row."""
    pause = PauseFactory(kind="task", name="shop.tasks.send_receipt")
    JobFactory(state=JobState.PARKED)

    end(warden, pause)

    assert Job.objects.get().state == JobState.READY


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"kind": "queue", "name": "x" * 101}, "at most 100"),
        ({"kind": "queue", "name": ""}, "required"),
        ({"kind": "host", "name": "x"}, "not one of the available choices"),
        ({"kind": "queue", "name": "mail"}, "already exists"),
    ],
)
def test_what_cannot_be_paused_is_refused_on_the_form(warden, given, problem):
    """Nothing is written, and the page says why."""
    PauseFactory(name="mail")

    response = warden.post(page("pause", name="add"), given)

    assert response.status_code == 200
    assert problem in response.content.decode()
    assert Pause.objects.count() == 1


def test_who_may_look_may_not_pause(viewer):
    """Neither add nor end."""
    pause = PauseFactory()

    assert viewer.get(page("pause")).status_code == 200
    assert viewer.get(page("pause", pause.pk)).status_code == 200
    assert viewer.post(page("pause", name="add"), {"kind": "queue", "name": "mail"}).status_code == 403
    end(viewer, pause)
    assert Pause.objects.count() == 1


def test_pausing_needs_a_token(browser):
    """A page elsewhere must not stop work through the browser of someone logged in."""
    client = browser(*VIEWS, "pause_queue", csrf=True)

    assert client.post(page("pause", name="add"), {"kind": "queue", "name": "mail"}).status_code == 403
    assert end(client, PauseFactory()).status_code == 403
    assert Pause.objects.count() == 1
