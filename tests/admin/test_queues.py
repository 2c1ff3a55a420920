"""The screen of queues."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote

from django_workqueue.models import Pause
from tests.admin.conftest import VIEWS
from tests.admin.pages import page, told
from tests.factories import QueueFactory

pytestmark = pytest.mark.django_db


def run(client, action, *queues, **more):
    """Run an action of the list on ``queues``."""
    data = {"action": action, "_selected_action": [queue.pk for queue in queues], "index": 0, **more}
    return client.post(page("queue"), data)


@pytest.fixture
def warden(browser):
    """Return the browser of someone who may pause queues."""
    return browser(*VIEWS, "pause_queue")


def test_queue_is_paused_and_resumed(warden):
    """In an incident a person stops one queue and sees who did; the log keeps both."""
    mail = QueueFactory(name="mail")
    QueueFactory()

    paused = run(warden, "pause", mail)
    assert list(Pause.objects.values_list("kind", "name", "paused_by")) == [("queue", "mail", "vera")]
    assert told(paused) == ["1 queue was paused."]
    assert b"Paused by vera" in warden.get(page("queue")).content

    resumed = run(warden, "resume", mail)
    assert not Pause.objects.exists()
    assert told(resumed) == ["1 queue was resumed."]

    entries = LogEntry.objects.order_by("id").values_list("object_id", "change_message")
    assert list(entries) == [("mail", "Paused."), ("mail", "Resumed.")]


def test_pause_keeps_who_paused_first(warden):
    """A second click must not claim another person's pause."""
    queue = QueueFactory(paused=True)

    response = run(warden, "pause", queue)

    assert Pause.objects.get().paused_by == "olga"
    assert told(response) == ["0 queues were paused."]
    assert not LogEntry.objects.exists()


def test_pausing_needs_its_permission(viewer):
    """Who may look may not stop the work of others."""
    queue = QueueFactory()

    run(viewer, "pause", queue)

    assert not Pause.objects.exists()
    assert b'name="action"' not in viewer.get(page("queue")).content


def test_pausing_needs_a_token(browser):
    """A page elsewhere must not be able to stop a queue through the browser of someone logged in."""
    queue = QueueFactory()

    response = run(browser(*VIEWS, "pause_queue", csrf=True), "pause", queue)

    assert response.status_code == 403
    assert not Pause.objects.exists()


def test_name_of_any_letters_has_a_page(viewer):
    """A queue's name is its key: the address must survive what a name may hold."""
    queue = QueueFactory(name='a/b?c=d&e#f%20_5F "<é>')

    listing = viewer.get(page("queue")).content.decode()
    response = viewer.get(page("queue", quote(queue.pk)))

    assert response.status_code == 200
    assert response.context["original"] == queue
    assert "queue=a%2Fb%3Fc%3Dd%26e%23f%2520_5F+%22%3C%C3%A9%3E" in listing
