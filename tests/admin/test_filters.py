"""The filters beside the lists."""

from __future__ import annotations

import pytest

from django_workqueue.admin import filters
from tests.admin.pages import listed, page
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, QueueFactory

pytestmark = pytest.mark.django_db


def choices(response):
    """Return the choices of each filter, by its title."""
    changelist = response.context["cl"]
    return {
        str(spec.title): [str(choice["display"]) for choice in spec.choices(changelist)]
        for spec in changelist.filter_specs
    }


def test_jobs_are_filtered_by_state(viewer):
    """What waits, what is due later and what runs are three questions."""
    jobs = {
        "ready": JobFactory(),
        "scheduled": JobFactory(scheduled=True),
        "leased": JobFactory(leased=True),
    }

    for state, job in jobs.items():
        assert listed(viewer.get(page("job"), {"state": state})) == [job.pk]


def test_dead_letters_are_filtered_by_reason(viewer):
    """Jobs that their task rejected want another answer than those that used up their attempts."""
    DeadLetterFactory()
    rejected = DeadLetterFactory(rejected=True)

    assert listed(viewer.get(page("deadletter"), {"reason": "rejected"})) == [rejected.pk]


def test_finished_jobs_are_filtered_by_outcome(viewer):
    """Cancelled jobs are finished, too."""
    FinishedJobFactory()
    cancelled = FinishedJobFactory(cancelled=True)

    assert listed(viewer.get(page("finishedjob"), {"outcome": "cancelled"})) == [cancelled.pk]


@pytest.mark.parametrize(
    ("model", "factory"),
    [("job", JobFactory), ("deadletter", DeadLetterFactory), ("finishedjob", FinishedJobFactory)],
)
def test_queues_are_offered_from_their_own_table(viewer, django_assert_num_queries, model, factory):
    """The names come from a row per queue; DISTINCT over the jobs would read all of them."""
    QueueFactory(name="mail")
    QueueFactory(name="default")
    wanted = factory(queue="mail")
    factory(queue="default")

    response = viewer.get(page(model), {"queue": "mail"})

    assert listed(response) == [wanted.pk]
    assert choices(response)["queue"] == ["All", "default", "mail"]


def test_number_of_queues_offered_is_bounded(viewer, monkeypatch):
    """A project with a queue per customer still gets a page; queue: in the search box finds the others."""
    monkeypatch.setattr(filters, "QUEUE_CHOICES", 2)
    QueueFactory.create_batch(4)
    wanted = JobFactory(queue="queue-hidden")

    assert len(choices(viewer.get(page("job")))["queue"]) == 3
    assert listed(viewer.get(page("job"), {"queue": "queue-hidden"})) == [wanted.pk]


@pytest.mark.parametrize("query", ["?args__contains=x", "?lease__worker=x", "?metadata__icontains=x", "?id__gt=0"])
def test_lookup_that_no_filter_offers_is_refused(viewer, query):
    """An address made by hand must not scan ten million rows."""
    assert viewer.get(page("job", query=query)).status_code == 400
