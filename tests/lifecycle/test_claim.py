"""Claim: lanes take turns, and what is held is renewed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.domain.rotation import Rotation
from django_workqueue.lifecycle.claim import FEWEST_LANES, MOST_LANES, claim, renew
from django_workqueue.models import Job, Lease
from tests.claims import claim_one
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db


def rotation(store, queue: str = "default") -> Rotation:
    """Return a rotation that has walked the queue."""
    made = Rotation()
    made.learn(store.lanes(queue))
    return made


def served(store, lanes: Rotation, limit: int, queue: str = "default") -> list[str]:
    """Claim and return the tenants that were served."""
    return [job.tenant for job in claim(store, lanes, queue=queue, worker="w", limit=limit)]


@pytest.mark.parametrize("slots", [1, 4])
def test_single_job_of_a_quiet_tenant_does_not_wait_behind_a_thousand(store, slots):
    """It starts within a turn of the rotation (wavelens/gradient#111)."""
    Job.objects.bulk_create(JobFactory.build(tenant="loud") for _ in range(200))
    lanes = rotation(store)
    served(store, lanes, slots)
    JobFactory(tenant="quiet")
    lanes.learn(["quiet"])

    started = [tenant for _ in range(2) for tenant in served(store, lanes, slots)]

    assert "quiet" in started
    assert len(started) <= 2 * slots


def test_tenants_take_turns(store):
    """One each, in rotation, while all have work."""
    for tenant in "abc":
        JobFactory.create_batch(4, tenant=tenant)
    lanes = rotation(store)

    assert [served(store, lanes, 1)[0] for _ in range(9)] == list("abc" * 3)


def test_priority_does_not_jump_the_rotation(store):
    """It orders one tenant's own jobs and nothing else."""
    JobFactory.create_batch(4, tenant="a", priority=100)
    JobFactory.create_batch(4, tenant="b", priority=-100)
    lanes = rotation(store)

    assert [served(store, lanes, 1)[0] for _ in range(4)] == ["a", "b", "a", "b"]


def test_queues_have_rotations_of_their_own(store):
    """Claimed alternately, no tenant of either is left out, as happened with a common index."""
    for queue in ("x", "y"):
        for tenant in "ab":
            JobFactory.create_batch(3, queue=queue, tenant=tenant)
    lanes = {queue: rotation(store, queue) for queue in ("x", "y")}

    turns = [(queue, served(store, lanes[queue], 1, queue)[0]) for _ in range(2) for queue in ("x", "y")]

    assert turns == [("x", "a"), ("y", "a"), ("x", "b"), ("y", "b")]


def test_large_claim_shares_itself_out(store):
    """Every lane may give an equal part."""
    for tenant in "abcd":
        JobFactory.create_batch(10, tenant=tenant)

    taken = served(store, rotation(store), 12)

    assert {tenant: taken.count(tenant) for tenant in "abcd"} == dict.fromkeys("abcd", 3)


def test_empty_lanes_cost_no_further_round_trip(store):
    """A slot is filled though the first lanes in turn have nothing left."""
    JobFactory(tenant="z")
    lanes = Rotation()
    lanes.learn([f"gone{number}" for number in range(FEWEST_LANES - 1)] + ["z"])

    assert served(store, lanes, 1) == ["z"]


def test_very_many_lanes_are_looked_at_in_parts(store):
    """And none of them is forgotten."""
    Job.objects.bulk_create(JobFactory.build(tenant=f"t{number:03}") for number in range(MOST_LANES + 30))
    lanes = rotation(store)

    taken = [tenant for _ in range(3) for tenant in served(store, lanes, 100)]

    assert len(set(taken)) == len(taken) == MOST_LANES + 30


def test_no_lanes_are_no_statement(store, django_assert_num_queries):
    """An idle worker's claim costs nothing."""
    with django_assert_num_queries(0):
        assert served(store, Rotation(), 5) == []


def test_lease_is_the_queues_own(store, settings):
    """Slow queues have longer ones."""
    settings.WORKQUEUE = {"QUEUES": {"reports": {"LEASE": 120, "MAX_LEASE": 7200}}}
    JobFactory(queue="reports")
    served(store, rotation(store, "reports"), 1, "reports")

    lease = Lease.objects.get()
    assert lease.expires_at - lease.acquired_at == timedelta(seconds=120)
    assert lease.deadline_at - lease.acquired_at == timedelta(hours=2)


def test_drain_in_turns_gives_every_job_once(store):
    """Six hundred jobs of seven tenants, in batches of thirteen."""
    Job.objects.bulk_create(JobFactory.build(tenant=f"t{number % 7}", priority=number % 3) for number in range(600))
    lanes, seen = rotation(store), []
    while len(lanes):
        seen += [job.id for job in claim(store, lanes, queue="default", worker="w", limit=13)]

    assert len(seen) == len(set(seen)) == 600


# -- renew -------------------------------------------------------------------------------------------------------------


def test_renewal_answers_what_is_lost(store):
    """Each lease by its queue's own length."""
    JobFactory.create_batch(2)
    lapsed = claim_one(store)
    store.shift(31)
    alive = claim_one(store)

    assert renew(store, {lapsed.lease_id: "default", alive.lease_id: "default"}) == {lapsed.lease_id}


def test_nothing_held_is_no_statement(store, django_assert_num_queries):
    """A worker without work beats for its row only."""
    with django_assert_num_queries(0):
        assert renew(store, {}) == set()
