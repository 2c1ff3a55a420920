"""Limits and keys under contention: never one too many, and none forgotten."""

from __future__ import annotations

from collections import Counter

import pytest

from django_workqueue.domain.rotation import Rotation
from django_workqueue.domain.states import JobState, PauseKind
from django_workqueue.lifecycle import claim as claiming
from django_workqueue.lifecycle.limits import Sweep
from django_workqueue.models import Job
from tests import samples
from tests.claims import claim, complete
from tests.factories import JobFactory
from tests.racing import flat, race

from .test_races import ROUNDS, prepared

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ("default", "", "printer")


def block(count: int, *, limit: int) -> None:
    """Store jobs that wait for a slot of one key."""
    Job.objects.bulk_create(
        JobFactory.build(state=JobState.BLOCKED, concurrency_key="printer", concurrency_limit=limit)
        for _ in range(count)
    )


def test_admissions_at_the_same_moment_never_exceed_the_limit(store):
    """Each counts what the one before has let go."""
    for _ in range(ROUNDS):
        block(10, limit=3)

        race(*[lambda: prepared().admit([KEY])] * 4)

        assert Counter(Job.objects.values_list("state", flat=True)) == {"ready": 3, "blocked": 7}
        Job.objects.all().delete()


def test_admission_beside_claims_and_settlements_is_exact(store):
    """A slot that is freed at this moment is given away once, and the work comes to its end."""
    block(40, limit=2)
    seen = []

    def work():
        mine = prepared()
        for _ in range(400):
            mine.admit([KEY])
            seen.append(Job.objects.filter(state__in=("ready", "leased")).count())
            for job in claim(mine, "", limit=1):
                complete(mine, job)
            if not Job.objects.exists():
                return

    race(*[work] * 3)

    assert not Job.objects.exists()
    assert max(seen) <= 2


def test_claims_of_a_bounded_queue_never_exceed_its_limit(store, settings):
    """Four workers that claim at the same moment, as much as they like."""
    settings.WORKQUEUE = {"CONCURRENCY": 3, "TENANT_CONCURRENCY": 2}

    def work():
        mine, rotation = prepared(), Rotation()
        rotation.learn(["acme", "beta"])
        return claiming.claim(mine, rotation, queue="default", worker="worker-1", limit=8)

    for _ in range(ROUNDS):
        Job.objects.bulk_create(JobFactory.build(tenant=tenant) for tenant in ("acme", "beta") for _ in range(10))

        taken = flat(race(*[work] * 4))

        assert len(taken) == 3
        assert max(Counter(job.tenant for job in taken).values()) == 2
        Job.objects.all().delete()


def test_claims_within_a_rate_never_exceed_it(store, settings):
    """All workers take from one window."""
    settings.WORKQUEUE = {"RATE": "5/h"}
    Job.objects.bulk_create(JobFactory.build() for _ in range(40))

    def work():
        mine, rotation = prepared(), Rotation()
        rotation.learn([""])
        return [job for _ in range(4) for job in claiming.claim(mine, rotation, queue="default", worker="w", limit=2)]

    assert len(flat(race(*[work] * 4))) == 5


def test_expired_key_is_taken_over_once(store):
    """Of those that ask at the same moment one gets it, and the others are answered with its job."""
    for number in range(ROUNDS):
        old = samples.bill.using(dedupe_ttl=1).enqueue(number)
        store.shift(2)

        results = race(*[lambda number=number: samples.bill.using(dedupe_ttl=3600).enqueue(number)] * 4)

        assert sorted(result.duplicate for result in results) == [False, True, True, True]
        assert len({result.id for result in results} | {old.id}) == 2
    assert Job.objects.count() == ROUNDS * 2


def test_job_that_is_parked_while_its_task_is_resumed_is_not_forgotten(store):
    """The worker that parks it has looked at the pauses before, and the resume has seen no parked job."""
    for _ in range(ROUNDS):
        JobFactory()
        [job] = claim(store, "")
        store.pause(PauseKind.TASK, job.task, "olga")

        def resume(job=job):
            mine = prepared()
            mine.resume(PauseKind.TASK, job.task)
            mine.unpark([job.task])

        race(lambda job=job: prepared().park(job.lease_id, [job.id], last=True), resume)
        Sweep().run(store)

        assert Job.objects.get().state == JobState.READY
        Job.objects.all().delete()
