"""``manage.py workqueue cancel``: what became of each job, for people and for programs."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from django_workqueue.domain.ids import new_id
from django_workqueue.models import FinishedJob, Job
from tests.factories import JobFactory

from .test_workqueue import call, report

pytestmark = pytest.mark.django_db


def test_people_are_told_a_line_for_each_job():
    """Over, asked, or not there."""
    waits, runs, missing = JobFactory(), JobFactory(leased=True), new_id()

    told = call("cancel", str(waits.pk), str(runs.pk), str(missing))

    assert told.splitlines() == [
        f"Job {waits.pk} is cancelled.",
        f"Job {runs.pk} runs, and has been asked to end.",
        f"Job {missing} neither waits nor runs here.",
    ]


def test_programs_are_told_the_ids():
    """And the problem of each that was refused."""
    waits, runs, missing = JobFactory(), JobFactory(leased=True), new_id()

    assert report("cancel", "--force", str(waits.pk), str(runs.pk), str(missing)) == {
        "cancelled": [str(waits.pk)],
        "requested": [str(runs.pk)],
        "refused": {str(missing): f"Job {missing} neither waits nor runs here."},
    }
    assert Job.objects.get().cancel_force


def test_other_tenants_jobs_are_left_alone():
    """With ``--tenant``."""
    mine, other = JobFactory(tenant="acme"), JobFactory(tenant="other")
    call("cancel", "--tenant=acme", str(mine.pk), str(other.pk))

    assert FinishedJob.objects.get().pk == mine.pk
    assert Job.objects.get().pk == other.pk


def test_what_is_no_id_is_refused_before_anything_is_done():
    """A slip of the hand cancels nothing."""
    job = JobFactory()
    with pytest.raises(CommandError, match="'17' is not the id of a job"):
        call("cancel", str(job.pk), "17")

    assert Job.objects.exists()
