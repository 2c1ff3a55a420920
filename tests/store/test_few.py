"""Few rows are found by the index meant for them, wherever they lie among many."""

from __future__ import annotations

import pytest

from django_workqueue.domain.states import JobState
from django_workqueue.lifecycle import listing
from django_workqueue.lifecycle.listing import Wanted
from django_workqueue.store import few
from tests.factories import JobFactory, LeaseFactory

pytestmark = pytest.mark.django_db

TRAITS = {
    JobState.READY: {},
    JobState.SCHEDULED: {"scheduled": True},
    JobState.BLOCKED: {"state": "blocked", "concurrency_key": "k", "concurrency_limit": 1},
    JobState.PARKED: {"state": "parked"},
    JobState.LEASED: {"leased": True},
}


@pytest.mark.parametrize("state", JobState.values)
def test_all_jobs_in_a_state_are_found_where_they_are_few(store, state):
    """The others do not come with them."""
    jobs = {name: JobFactory.create_batch(3, **traits) for name, traits in TRAITS.items()}

    assert sorted(store.few_in_state(state)) == sorted(job.pk for job in jobs[state])


def test_many_are_not_named(store, monkeypatch):
    """Then it is for the caller to look through the newest."""
    monkeypatch.setattr(few, "FEW", 2)
    JobFactory.create_batch(3)
    JobFactory.create_batch(2, queue="mail")

    assert store.few_in_state("ready") is None
    assert len(store.few_in_state("ready", "mail")) == 2


def test_queue_narrows_only_where_its_index_has_it_in_front(store):
    """Scheduled jobs are in the order of their times: those of other queues come too, and are left out later."""
    JobFactory(queue="mail", scheduled=True)
    JobFactory(queue="video", scheduled=True)

    assert len(store.few_in_state("scheduled", "mail")) == 2


def test_key_finds_its_jobs_in_every_lane(store):
    """Those too that run, and whose key is free meanwhile."""
    wanted = [
        JobFactory(dedupe_key="order-17"),
        JobFactory(dedupe_key="order-17", tenant="acme"),
        JobFactory(dedupe_key="order-17", tenant="acme", leased=True, dedupe_until_start=True),
        JobFactory(dedupe_key="order-17", queue="mail", leased=True),
    ]
    JobFactory(dedupe_key="order-18")

    assert sorted(store.few_with_key("order-17")) == sorted(job.pk for job in wanted)


def test_lease_finds_the_jobs_it_covers(store):
    """And no others."""
    lease = LeaseFactory()
    jobs = [JobFactory(leased=True, lease=lease) for _ in range(2)]
    JobFactory(leased=True)

    assert sorted(store.few_of_lease(lease.pk)) == sorted(job.pk for job in jobs)


def test_old_leased_job_is_listed_behind_many_newer_ones(monkeypatch):
    """What has run for hours is what is looked for, and no window of the newest holds it."""
    monkeypatch.setattr(listing, "WINDOW", 5)
    old = JobFactory(leased=True)
    JobFactory.create_batch(20)

    page = listing.jobs(Wanted(state="leased"))

    assert [row.pk for row in page.rows] == [old.pk]
    assert page.next is None


def test_worker_finds_the_jobs_it_holds(store):
    """Under all its leases."""
    mine = [JobFactory(leased=True, lease=LeaseFactory(worker="worker-7")) for _ in range(2)]
    JobFactory(leased=True)

    assert sorted(store.few_of_worker("worker-7")) == sorted(job.pk for job in mine)
    assert store.few_of_worker("nobody") == []
