"""Turns at speed: tenants that have work get the same, however many workers take it and however much one has."""

from __future__ import annotations

from itertools import accumulate, combinations
from threading import Barrier

import pytest
from django.db import connection

from django_workqueue.domain.rotation import Rotation
from django_workqueue.lifecycle.claim import claim
from django_workqueue.models import Job
from django_workqueue.store import store_for
from tests import samples
from tests.factories import JobFactory
from tests.filling import fill_ready
from tests.racing import PATIENCE_SECONDS, flat, race

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = 4
ROUNDS = 12


class Claimer:
    """A worker's claims: a store and a rotation of its own."""

    def __init__(self, name: str = "w") -> None:
        self.name = name
        self.store = store_for()
        self.store.prepare()
        self.rotation = Rotation()
        self.walk()

    def walk(self) -> None:
        """Learn the lanes that are there."""
        self.rotation.learn(self.store.lanes("default"))

    def claim(self, limit: int):
        """Claim once and return the jobs."""
        return claim(self.store, self.rotation, queue="default", worker=self.name, limit=limit)


def widest_gap(tenants: list[str], one: str, other: str) -> int:
    """Return by how much the claims of two tenants differ in that window of ``tenants`` in which they differ most."""
    steps = [(tenant == one) - (tenant == other) for tenant in tenants]
    lead = list(accumulate(steps, initial=0))
    return max(lead) - min(lead)


@pytest.mark.parametrize(
    ("tenants", "limits", "quantum"),
    [(2, [4], 2), (3, [30], 10), (12, [5], 1), (5, [1], 1), (7, [1, 30, 3, 14], 4)],
    ids=["two", "large batches", "more lanes than jobs", "one by one", "all sizes"],
)
def test_tenants_that_stay_backlogged_differ_by_a_quantum_for_each_worker(store, tenants, limits, quantum):
    """In any window of the claims of four workers: one tenant may be ahead by its share of what each took last."""
    names = [f"t{number}" for number in range(tenants)]
    each = WORKERS * ROUNDS * max(limits)
    # One tenant has ten times as much and came first, another is the most urgent.
    backlog = dict.fromkeys(names, each) | {names[0]: each * 10}
    for place, (name, count) in enumerate(backlog.items()):
        fill_ready(count, tenant=name, priority=place * 5, first=place * each * 10 + 1)
    start = Barrier(WORKERS)

    def work(name):
        claimer, taken = Claimer(name), []
        for number in range(ROUNDS):
            start.wait(PATIENCE_SECONDS)
            taken += claimer.claim(limits[number % len(limits)])
        return taken

    taken = flat(race(*[lambda name=name: work(name) for name in "abcd"]))

    # Leases are numbered in the order of the claims.
    order = [job.tenant for job in sorted(taken, key=lambda job: job.lease_id)]
    assert len({job.id for job in taken}) == len(taken)
    assert set(order) == set(names)
    gaps = {pair: widest_gap(order, *pair) for pair in combinations(names, 2)}
    assert max(gaps.values()) <= WORKERS * quantum, gaps


@pytest.mark.parametrize("loud", [1, 30])
def test_urgent_job_of_a_quiet_tenant_is_claimed_within_one_turn(store, loud):
    """Two hundred thousand jobs of others, all more urgent by their own account, are not in its way."""
    backlog = 200_000 if connection.vendor == "postgresql" else 20_000
    for number in range(loud):
        share = backlog // loud
        fill_ready(share, tenant=f"loud{number}", priority=100, first=number * share + 1)
    claimer, limit = Claimer(), 8
    for _ in range(5):
        claimer.claim(limit)

    quiet = samples.add.using(tenant="quiet", priority=50).enqueue(1, 2)
    claimer.walk()
    turn = -(-len(claimer.rotation) // limit)
    taken = [job.id for _ in range(turn) for job in claimer.claim(limit)]

    assert quiet.id in set(map(str, taken))
    assert len(taken) <= turn * limit
    assert Job.objects.filter(tenant__startswith="loud", state="ready").count() > backlog * 0.9


def test_quiet_tenant_is_found_behind_its_own_less_urgent_jobs(store):
    """Priority orders one tenant's own jobs."""
    fill_ready(1000, tenant="loud")
    JobFactory.create_batch(5, tenant="quiet", priority=-1)
    urgent = JobFactory(tenant="quiet", priority=1)

    taken = Claimer().claim(2)

    assert [job.id for job in taken if job.tenant == "quiet"] == [urgent.pk]
