"""A month of work, as the screens are measured with it: rows of every sort, and such as the package would store."""

from __future__ import annotations

import pytest
from django.db import connection

from django_workqueue.domain.states import Ending, JobState
from django_workqueue.models import DeadLetter, FinishedJob, Job, QueueMinute, Workflow
from testproject.benchmarks import screens
from testproject.benchmarks.database import Database
from testproject.benchmarks.month import FULL, LEASED, THOUSAND

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def filled():
    """Fill the test's database."""
    database = Database("postgres://localhost/unused")
    database._entry = connection.settings_dict
    THOUSAND.fill(database)
    database.close()


def test_month_has_jobs_in_every_state(filled):
    """A filter that finds nothing would be measured as fast."""
    assert Job.objects.count() == 1000
    assert set(Job.objects.values_list("state", flat=True)) == set(JobState.values)
    assert Job.objects.leased().count() == LEASED
    assert set(FinishedJob.objects.values_list("outcome", flat=True)) == set(Ending.values)
    assert QueueMinute.objects.count() == Workflow.objects.count() == DeadLetter.objects.count() == 1000


def test_what_is_sought_is_there(filled):
    """A search that finds nothing is another one."""
    assert Job.objects.filter(dedupe_key=screens.SOUGHT["key"][0]).exists()
    assert DeadLetter.objects.filter(fingerprint=screens.GROUPS[0]).exists()
    assert Job.objects.filter(queue="rare", task__startswith="shop.rare").count() == 3


def test_size_follows_the_scale():
    """Smaller and sooner; but never so few rows that a page is not full."""
    assert FULL.times(1.0) == FULL
    assert FULL.times(0.1).live == 100_000
    assert FULL.times(0.000_1).live == 250
