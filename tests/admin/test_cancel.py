"""Cancelling from the screen of live jobs, and what a running job shows of itself there."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, LogEntry

from django_workqueue.models import FinishedJob, Job
from tests.admin.conftest import VIEWS
from tests.admin.pages import Elements, page, told
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db

OPERATIONS = ("cancel", "force_cancel")


@pytest.fixture
def canceller(browser):
    """Return the browser of someone who may look at everything and cancel."""
    return browser(*VIEWS, "cancel_job")


def act(client, name, *jobs, **more):
    """Run an action of the list on ``jobs``; ``confirmed="yes"`` answers the question."""
    return client.post(page("job"), {"action": name, "_selected_action": [job.pk for job in jobs], **more})


def links(response):
    """Return where the links of a page lead."""
    return [attributes.get("href") for tag, attributes in Elements(response).found if tag == "a"]


@pytest.mark.parametrize(("name", "force"), [("cancel", None), ("force_cancel", True)])
def test_selected_jobs_are_cancelled_or_asked_to_end(canceller, name, force):
    """Those that wait are over, those that run have a request; each has its entry in the log."""
    waits, runs, other = JobFactory(), JobFactory(leased=True), JobFactory()

    response = act(canceller, name, waits, runs, confirmed="yes")

    assert told(response) == ["2 jobs were cancelled, or asked to end."]
    assert FinishedJob.objects.get().pk == waits.pk
    runs.refresh_from_db()
    assert (runs.cancel_requested_at is not None, runs.cancel_force) == (True, force)
    assert Job.objects.get(pk=other.pk).cancel_requested_at is None
    entries = LogEntry.objects.values_list("object_id", "action_flag", "change_message")
    words = "Cancelled by force." if force else "Cancelled."
    assert set(entries) == {(str(job.pk), CHANGE, words) for job in (waits, runs)}


@pytest.mark.parametrize("name", OPERATIONS)
def test_action_asks_before_it_acts(canceller, name):
    """A slip of the mouse cancels nothing."""
    job = JobFactory()

    asked = act(canceller, name, job, index=0)

    assert b"1 job is selected" in asked.content
    assert str(job.pk) in asked.content.decode()
    assert Job.objects.exists()
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("name", OPERATIONS)
def test_running_job_has_a_page_for_each_way(canceller, name):
    """GET asks, POST does."""
    job = JobFactory(leased=True)
    address = page("job", job.pk, name=name)
    assert address in links(canceller.get(page("job", job.pk)))

    canceller.get(address)
    assert Job.objects.get().cancel_requested_at is None
    canceller.post(address)

    assert Job.objects.get().cancel_requested_at is not None


def test_force_is_not_offered_for_a_job_that_waits(canceller):
    """There is nothing to be forced."""
    job = JobFactory()
    found = links(canceller.get(page("job", job.pk)))

    assert page("job", job.pk, name="cancel") in found
    assert page("job", job.pk, name="force_cancel") not in found


@pytest.mark.parametrize("name", OPERATIONS)
def test_who_may_only_look_cannot_cancel(viewer, name):
    """Neither by the action nor by the page, and is not offered it."""
    job = JobFactory(leased=True)
    address = page("job", job.pk, name=name)

    act(viewer, name, job, confirmed="yes")
    assert viewer.post(address).status_code == 403

    assert address not in links(viewer.get(page("job", job.pk)))
    assert Job.objects.get().cancel_requested_at is None


def test_job_that_is_over_meanwhile_is_told(canceller):
    """Somebody else was faster, or the job was."""
    job = JobFactory()
    address = page("job", job.pk, name="cancel")
    act(canceller, "cancel", job, confirmed="yes")

    assert canceller.post(address).status_code == 302
    assert FinishedJob.objects.count() == 1


# -- progress ----------------------------------------------------------------------------------------------------------


def test_progress_is_a_bar_with_its_words(viewer):
    """In the list and on the page; without inline styles or scripts."""
    job = JobFactory(leased=True, progress='{"done":3,"total":10,"text":"<b>rows</b>"}')

    for address in (page("job"), page("job", job.pk)):
        shown = viewer.get(address)
        assert ("progress", {"max": "100", "value": "30"}) in Elements(shown).found
        assert "3 / 10 (30%) &lt;b&gt;rows&lt;/b&gt;" in shown.content.decode()


@pytest.mark.parametrize(
    ("stored", "shown"),
    [('{"done":3,"total":null,"text":"rows"}', "3 rows"), (None, "-"), ("{broken", "-"), ('{"done":"x"}', "-")],
)
def test_progress_without_a_total_is_text(viewer, stored, shown):
    """And what cannot be read does no harm."""
    job = JobFactory(leased=True, progress=stored)
    content = viewer.get(page("job", job.pk)).content.decode()

    assert "<progress" not in content
    assert shown in content
