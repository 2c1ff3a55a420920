"""What the columns of each screen tell."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.admin.pages import listed, page
from tests.factories import (
    DeadLetterFactory,
    FinishedJobFactory,
    JobFactory,
    LeaseFactory,
    QueueFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db


def text(response):
    """Return a page's source on one line, with plain spaces."""
    return " ".join(response.content.decode().replace("\xa0", " ").split())


def test_job_tells_its_state_and_when_it_is_due(viewer):
    """States are words, due times lie ahead, and the attempt under way is counted."""
    JobFactory(scheduled=True, ready_at=timezone.now() + timedelta(hours=2, minutes=1))
    JobFactory(leased=True, max_attempts=3)

    shown = text(viewer.get(page("job")))

    assert ">Scheduled<" in shown
    assert ">in 2 hours<" in shown or ">in 2 hours, 1 minute<" in shown
    assert ">Leased<" in shown
    assert ">1 of 3<" in shown


def test_leased_job_and_its_lease_lead_to_each_other(viewer):
    """Who holds this job, and what else that lease holds, is one click each way."""
    job = JobFactory(leased=True)
    JobFactory(leased=True)

    assert page("lease", job.lease_id) in text(viewer.get(page("job", job.pk)))
    link = page("job", query=f"?q=lease:{job.lease_id}")
    assert link in text(viewer.get(page("lease", job.lease_id)))
    assert listed(viewer.get(link)) == [job.pk]


def test_job_whose_lease_is_gone_still_has_a_page(viewer):
    """No constraint ties the two: the lease may go between two statements of the page."""
    job = JobFactory(leased=True)
    job.lease.delete()

    assert viewer.get(page("job", job.pk)).status_code == 200
    assert viewer.get(page("job")).status_code == 200


def test_lapsed_lease_is_told_from_one_that_holds(viewer):
    """A job that looks as if it ran, but whose worker is gone, is what a person is looking for."""
    held, lapsed = LeaseFactory(), LeaseFactory(lapsed=True)

    assert "Held" in text(viewer.get(page("lease", held.pk)))
    assert "Lapsed, about to be reaped" in text(viewer.get(page("lease", lapsed.pk)))


def test_dead_letter_tells_why_it_stopped(viewer):
    """The list answers what died, why, and when."""
    DeadLetterFactory(rejected=True, last_error="Reject: no such order\nwith details", acknowledged=True)

    shown = text(viewer.get(page("deadletter")))

    assert ">Rejected<" in shown
    assert ">Reject: no such order<" in shown
    assert ">1 minute ago<" in shown


def test_acknowledged_letter_tells_by_whom(viewer):
    """Two people must not work on the same one."""
    letter = DeadLetterFactory(acknowledged=True)

    assert ">olga<" in text(viewer.get(page("deadletter", letter.pk)))


def test_finished_job_tells_how_long_it_ran(viewer):
    """A cancelled one never ran."""
    FinishedJobFactory()
    cancelled = FinishedJobFactory(cancelled=True)

    assert ">2.0 s<" in text(viewer.get(page("finishedjob")))
    assert "Cancelled" in text(viewer.get(page("finishedjob", cancelled.pk)))


def test_worker_that_went_silent_is_not_called_running(viewer):
    """A killed process cannot say that it stopped: its row still says running."""
    WorkerFactory(silent=True)
    WorkerFactory(stopping=True, running=3, memory_bytes=50 * 2**20)

    shown = text(viewer.get(page("worker")))

    assert ">Silent: stopped, or cut off<" in shown
    assert ">Stopping<" in shown
    assert ">3 of 8<" in shown
    assert ">Running<" not in shown


def test_worker_page_shows_its_memory(viewer):
    """In units that can be read; a dash when the worker could not tell."""
    known, unknown = WorkerFactory(memory_bytes=50 * 2**20), WorkerFactory()

    assert ">50.0 MB<" in text(viewer.get(page("worker", known.pk.replace(":", "_3A"))))
    assert "MB<" not in text(viewer.get(page("worker", unknown.pk.replace(":", "_3A"))))


def test_queue_leads_to_its_jobs(viewer):
    """From "which queue is slow" to "which jobs wait there" is one click."""
    QueueFactory(name="mail & more", done=12345)
    job = JobFactory(queue="mail & more")
    JobFactory()

    link = page("job", query="?queue=mail+%26+more")

    assert link in text(viewer.get(page("queue")))
    assert listed(viewer.get(link)) == [job.pk]
