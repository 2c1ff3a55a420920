"""A month of work, as the screens are measured with it: rows of every sort, and such as the package would store."""

from __future__ import annotations

import pytest
from django.db import connection

from django_workqueue.domain.states import Ending, JobState
from django_workqueue.models import DeadLetter, FinishedJob, Job, QueueMinute, Workflow
from testproject.benchmarks import screens
from testproject.benchmarks.actors.screens import measured
from testproject.benchmarks.bench import Bench
from testproject.benchmarks.database import Database
from testproject.benchmarks.measures import screens as measure
from testproject.benchmarks.month import FULL, LEASED, THOUSAND

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def database():
    """Return the test's database as the benchmark would see it."""
    made = Database("postgres://localhost/unused")
    made._entry = connection.settings_dict
    yield made
    made.close()


@pytest.fixture
def filled(database):
    """Fill it."""
    THOUSAND.fill(database)


def test_month_has_jobs_in_every_state(filled):
    """A filter that finds nothing would be measured as fast."""
    assert Job.objects.count() == 1000
    assert set(Job.objects.values_list("state", flat=True)) == set(JobState.values)
    assert Job.objects.leased().count() == LEASED
    assert set(FinishedJob.objects.values_list("outcome", flat=True)) == set(Ending.values)
    assert QueueMinute.objects.filter(is_hour=True).count() == QueueMinute.objects.filter(is_hour=False).count() == 1000
    assert Workflow.objects.count() == DeadLetter.objects.count() == 1000


def test_what_is_sought_is_there(filled):
    """A search that finds nothing is another one."""
    assert Job.objects.filter(dedupe_key=screens.SOUGHT["key"][0]).exists()
    assert DeadLetter.objects.filter(fingerprint=screens.GROUPS[0]).exists()
    assert Job.objects.filter(queue="rare", task__startswith="shop.rare").count() == 3


def test_trial_gives_every_reading_and_leaves_nothing(database, monkeypatch):
    """Few rows, many with no idea of them, many that are known: each page is asked for three times."""
    asked = []

    def answer(_environment, *arguments):
        asked.append((arguments, Job.objects.count()))
        return dict.fromkeys(measure.PAGES, (1.5, 2, 3))

    monkeypatch.setattr(measure, "ask", answer)
    bench = Bench(0.0001)
    vars(bench)["database"] = database

    [trial] = measure.TRIALS
    readings = trial.run(bench)

    assert set(readings) == set(trial.gives) == {name for each in measure.FIGURES for name in each.readings}
    assert [count for _, count in asked] == [1000, 250, 250]
    assert Job.objects.count() == 0


def test_page_is_measured_by_time_statements_and_what_it_looks_at(filled, admin_client):
    """A time alone says as much about the machine."""
    requests = dict(screens.pages(admin_client))["job.list"]()

    [(milliseconds, statements, pages)] = [measured(request, repeat=1) for request in requests]

    assert milliseconds > 0
    assert 1 <= statements <= 15
    assert 1 <= pages <= 1000


def test_size_follows_the_scale():
    """Smaller and sooner; but never so few rows that a page is not full."""
    assert FULL.times(1.0) == FULL
    assert FULL.times(0.1).live == 100_000
    assert FULL.times(0.000_1).live == 250
