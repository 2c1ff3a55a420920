"""The screen of queues."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote

from django_workqueue.admin.queue_columns import QueueColumnsMixin
from django_workqueue.models import FinishedJob, Job, Pause
from django_workqueue.testing import drain
from tests.admin.conftest import VIEWS
from tests.admin.pages import page, told
from tests.factories import (
    DeadLetterFactory,
    JobFactory,
    QueueFactory,
    QueueMinuteFactory,
    WorkerFactory,
    ago,
)

pytestmark = pytest.mark.django_db


def run(client, action, *queues, **more):
    """Run an action of the list on ``queues``."""
    data = {"action": action, "_selected_action": [queue.pk for queue in queues], "index": 0, **more}
    return client.post(page("queue"), data)


def cells(response):
    """Return what the columns of the first row of a list show, as text, by their names."""
    found = re.findall(r'<t[dh] class="field-(\w+)[^>]*>(.*?)</t[dh]>', response.content.decode(), re.DOTALL)
    return {name: re.sub(r"<[^>]*>", "", cell).strip() for name, cell in reversed(found)}


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


# -- how they stand ----------------------------------------------------------------------------------------------------


def test_list_tells_depth_age_workers_and_the_last_hour(viewer):
    """Which queue is in trouble is seen without opening any."""
    QueueFactory(name="mail")
    JobFactory(queue="mail", ready_at=ago(minutes=5))
    JobFactory(queue="mail", scheduled=True)
    DeadLetterFactory(queue="mail")
    WorkerFactory(queues="mail")
    QueueMinuteFactory(queue="mail", done=120, failed=7, wait_histogram="0,0,4", run_histogram="0,0,0,0,0,0,9")

    row = cells(viewer.get(page("queue")))

    assert row["standing"] == "Open"
    assert row["oldest"].startswith("5 min")
    counts = [row[name] for name in ("ready", "scheduled", "withheld", "held", "dead_letters")]
    assert counts == ["1", "1", "0, 0", "0", "1"]
    assert (row["workers"], row["pace"], row["failed_lately"]) == ("1", "2.0", "7")
    assert (row["waited"], row["ran"]) == ("4 ms, 4 ms", "64 ms, 64 ms")


def test_queue_without_a_worker_is_marked(viewer):
    """Also when all that serve it are quiet."""
    QueueFactory(name="mail")
    JobFactory(queue="mail")
    WorkerFactory(queues="mail", state="quiet")

    assert cells(viewer.get(page("queue")))["standing"] == "No worker"


def test_limits_are_told_in_words(viewer, settings):
    """As the settings say; no statement is needed."""
    limits = {"CONCURRENCY": 8, "TENANT_CONCURRENCY": 2, "RATE": "100/m"}
    settings.WORKQUEUE = {"QUEUES": {"mail": limits}}
    QueueFactory(name="mail")

    assert cells(viewer.get(page("queue")))["limits"] == "8 at once, 2 a tenant, 100 in 1 min 0 s"


def test_list_shows_no_numbers_where_they_take_too_long(viewer, monkeypatch):
    """Rather than a page that never comes; pausing works all the same."""
    QueueFactory(name="mail")
    monkeypatch.setattr(QueueColumnsMixin, "look", lambda *_given: {"too_slow": True})

    response = viewer.get(page("queue"))

    assert cells(response)["ready"] == "-"
    assert "too long" in told(response)[0]


# -- all jobs of a queue -----------------------------------------------------------------------------------------------


@pytest.fixture
def janitor(browser):
    """Return the browser of someone who may move and cancel what is in a queue."""
    return browser(*VIEWS, "move_queue", "purge_queue", "reschedule_job", "cancel_job")


def test_jobs_of_a_queue_are_moved_by_a_job_that_leaves_what_runs(janitor):
    """However many they are; the log says who asked and why, at the queue and at each job."""
    queue = QueueFactory(name="mail")
    waiting = [JobFactory(queue="mail"), JobFactory(queue="mail", scheduled=True)]
    running = JobFactory(queue="mail", leased=True)
    elsewhere = JobFactory(queue="other")
    address = page("queue", "mail", name="move_jobs")

    asked = janitor.get(address)
    assert "3 jobs at this moment" in asked.content.decode()
    janitor.post(address, {"name": "mail", "queue": "spare", "reason": "Vendor is down"})
    drain("default", max_jobs=1)

    assert {job.queue for job in Job.objects.filter(pk__in=[each.pk for each in waiting])} == {"spare"}
    assert Job.objects.get(pk=running.pk).queue == "mail"
    assert Job.objects.get(pk=elsewhere.pk).queue == "other"
    assert Job.objects.get(pk=waiting[1].pk).state == "scheduled"
    messages = dict(LogEntry.objects.values_list("object_id", "change_message"))
    assert messages[queue.pk] == "Its jobs are being moved. To the queue: spare. Reason: Vendor is down."
    assert "Vendor is down" in messages[str(waiting[0].pk)]


def test_purge_cancels_what_is_ready_and_nothing_else(janitor):
    """What is scheduled, runs or waits elsewhere stays."""
    QueueFactory(name="mail")
    ready = JobFactory.create_batch(3, queue="mail")
    kept = [JobFactory(queue="mail", scheduled=True), JobFactory(queue="mail", leased=True), JobFactory(queue="other")]

    response = janitor.post(page("queue", "mail", name="purge"), {"name": "mail", "reason": "Sent twice"})
    job = Job.objects.get(task="django_workqueue.admin.bulk.decide")
    assert response.url == page("job", job.pk)
    drain("default", max_jobs=1)

    assert set(FinishedJob.objects.filter(outcome="cancelled").values_list("pk", flat=True)) == {
        each.pk for each in ready
    }
    assert set(Job.objects.values_list("pk", flat=True)) == {each.pk for each in kept}


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("purge", {"name": "mial", "reason": "x"}, "This is not the name: it is mail."),
        ("purge", {"name": "mail"}, "This field is required."),
        ("move_jobs", {"name": "mail", "queue": "mail", "reason": "x"}, "Name another queue."),
        ("move_jobs", {"name": "mail", "queue": "a\x00b", "reason": "x"}, "Null characters are not allowed."),
    ],
)
def test_nothing_is_done_before_name_reason_and_target_are_right(janitor, name, given, problem):
    """A button is pressed too easily for what concerns a whole queue."""
    QueueFactory(name="mail")
    JobFactory(queue="mail")

    response = janitor.post(page("queue", "mail", name=name), given)

    assert problem in response.content.decode()
    assert Job.objects.count() == 1


@pytest.mark.parametrize("missing", ["queue", "job"])
@pytest.mark.parametrize(("name", "verbs"), [("move_jobs", ("move", "reschedule")), ("purge", ("purge", "cancel"))])
def test_whole_queue_needs_the_permission_for_it_and_for_its_jobs(browser, name, verbs, missing):
    """Checked where it is asked for, where it is done, and where it is offered."""
    QueueFactory(name="mail")
    JobFactory(queue="mail")
    held = {"queue": f"{verbs[1]}_job", "job": f"{verbs[0]}_queue"}[missing]
    client = browser(*VIEWS, held)
    address = page("queue", "mail", name=name)

    assert client.get(address).status_code == 403
    assert client.post(address, {"name": "mail", "queue": "spare", "reason": "x"}).status_code == 403
    assert address not in client.get(page("queue", "mail")).content.decode()
    assert Job.objects.count() == 1


def test_page_of_a_queue_pauses_and_resumes_it(warden):
    """One of the two is offered."""
    QueueFactory(name="mail")
    pausing, resuming = (page("queue", "mail", name=name) for name in ("pause", "resume"))

    content = warden.get(page("queue", "mail")).content.decode()
    assert pausing in content
    assert resuming not in content
    warden.post(pausing)
    assert Pause.objects.get().paused_by == "vera"
    assert resuming in warden.get(page("queue", "mail")).content.decode()
    warden.post(resuming)
    assert not Pause.objects.exists()
