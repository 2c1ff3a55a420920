"""The screen of workers: what each does, and asking them for something."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote

from django_workqueue.models import Lease, Worker
from tests.admin.conftest import VIEWS
from tests.admin.pages import page, told
from tests.factories import LeaseFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def run(client, action, *workers, **more):
    """Run an action of the list on ``workers``, confirmed."""
    data = {"action": action, "_selected_action": [each.pk for each in workers], "index": 0, "confirmed": "yes"}
    return client.post(page("worker"), data | more)


@pytest.fixture
def foreman(browser):
    """Return the browser of someone who may manage workers."""
    return browser(*VIEWS, "manage_worker")


def test_worker_is_made_quiet_and_resumed_from_the_list(foreman):
    """The log keeps who asked for what."""
    worker = WorkerFactory()

    quieted = run(foreman, "quiet", worker)
    assert told(quieted) == ["1 worker was asked, and hears of it at its next heartbeat."]
    assert b"Running; asked to be: Quiet" in foreman.get(page("worker")).content
    assert Worker.objects.get().requested_by == "vera"

    run(foreman, "resume", worker)
    assert Worker.objects.get().request == "work"
    entries = LogEntry.objects.order_by("id").values_list("object_id", "change_message")
    assert list(entries) == [(worker.pk, "Asked to be quiet."), (worker.pk, "Asked to work.")]


def test_stop_asks_first_and_wants_a_reason(foreman):
    """It cannot be taken back."""
    worker = WorkerFactory()
    address = page("worker", worker.pk, name="stop")

    assert b"exits with 0" in foreman.get(address).content
    foreman.post(address, {"reason": ""})
    assert Worker.objects.get().request == "work"

    foreman.post(address, {"reason": "Host goes."})
    assert Worker.objects.get().request == "stop"
    assert LogEntry.objects.get().change_message == "Asked to stop. Reason: Host goes.."


def test_silent_worker_is_forgotten_and_a_living_one_is_not(foreman, store):
    """One that is refused does not stop the other."""
    living, silent = WorkerFactory(), WorkerFactory(silent=True)
    LeaseFactory(worker=silent.pk)

    response = run(foreman, "forget", living, silent, reason="Its host is gone.")

    assert told(response)[0] == "1 worker was forgotten."
    assert "is alive. Ask it to stop instead." in told(response)[1]
    assert list(Worker.objects.all()) == [living]
    assert Lease.objects.expired(store.now()).count() == 1


@pytest.mark.parametrize(
    ("made", "offered"),
    [
        ({}, {"quiet", "stop"}),
        ({"request": "quiet"}, {"resume", "stop"}),
        ({"request": "stop"}, set()),
        ({"silent": True}, {"forget"}),
    ],
)
def test_page_offers_what_the_worker_can_heed(foreman, made, offered):
    """Nothing that would be refused."""
    worker = WorkerFactory(**made)

    content = foreman.get(page("worker", worker.pk)).content.decode()

    names = ("quiet", "resume", "stop", "forget")
    assert {name for name in names if page("worker", quote(worker.pk), name=name) in content} == offered


@pytest.mark.parametrize("name", ["quiet", "resume", "stop", "forget"])
def test_managing_needs_its_permission_at_every_door(viewer, name):
    """Who may look may not stop the fleet: not by the action, not by the address."""
    worker = WorkerFactory(silent=name == "forget", request="quiet" if name == "resume" else "work")
    before = list(Worker.objects.values())

    run(viewer, name, worker, reason="x")
    address = page("worker", worker.pk, name=name)
    assert viewer.get(address).status_code == 403
    assert viewer.post(address, {"reason": "x"}).status_code == 403

    assert list(Worker.objects.values()) == before
    assert address not in viewer.get(page("worker", worker.pk)).content.decode()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({}, "Running"),
        ({"state": "quiet"}, "Quiet"),
        ({"stopping": True}, "Stopping"),
        ({"silent": True}, "Silent: stopped, or cut off"),
    ],
)
def test_state_is_told_in_words(viewer, made, words):
    """Colour alone tells nothing to many people."""
    WorkerFactory(**made)

    assert f">{words}" in viewer.get(page("worker")).content.decode()
