"""Claims: what is taken, in which order, and under which lease."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.domain.outcomes import Bury, Retry
from django_workqueue.domain.rotation import FIRST_RANK, LAST_RANK, LaneTurn, Segment
from django_workqueue.domain.states import DeathReason, JobState
from django_workqueue.models import Job, Lease
from tests.claims import NO_DELAY, claim, claim_one, fail, order, put_back
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, ago

pytestmark = pytest.mark.django_db


def lapse_all(store, *, to=put_back) -> None:
    """Let every lease lapse and reap it."""
    store.shift(31)
    store.reap(to)


# -- what is there to claim --------------------------------------------------------------------------------------------


def test_empty_queue_hands_out_nothing(store):
    """The answer is an empty list, and no lease is opened."""
    assert claim(store) == []
    assert not Lease.objects.exists()


def test_jobs_that_are_not_ready_are_left(store):
    """What is scheduled, leased, finished or dead is nobody's to claim."""
    JobFactory(scheduled=True)
    JobFactory(leased=True)
    FinishedJobFactory()
    DeadLetterFactory()

    assert claim(store) == []
    assert store.lanes("default") == []
    assert store.ready_queues() == []


def test_claim_serves_the_named_queue_alone(store):
    """Another queue's work is for whoever serves it."""
    JobFactory(queue="mail")
    mine = JobFactory()

    assert [job.id for job in claim(store)] == [mine.pk]
    assert claim(store) == []


def test_ready_queues_are_named_in_order(store):
    """Each once, however many jobs wait in it."""
    for name in ("mail", "default", "mail", "zebra"):
        JobFactory(queue=name)
    JobFactory(queue="later", scheduled=True)

    assert store.ready_queues() == ["default", "mail", "zebra"]


def test_lanes_are_the_tenants_with_ready_work(store):
    """Each once, in order, of this queue alone."""
    for tenant in ("b", "", "a", "b"):
        JobFactory(tenant=tenant)
    JobFactory(tenant="c", scheduled=True)
    JobFactory(tenant="d", queue="mail")

    assert store.lanes("default") == ["", "a", "b"]


def test_lanes_can_be_walked_in_parts(store):
    """A part begins behind the lane where the last one ended."""
    for tenant in ("", "a", "b", "c"):
        JobFactory(tenant=tenant)

    assert store.lanes("default", limit=2) == ["", "a"]
    assert store.lanes("default", after="a", limit=2) == ["b", "c"]
    assert store.lanes("default", after="c") == []


def test_lane_of_any_name_can_be_claimed(store):
    """Quotes, braces, percent signs and other scripts are data."""
    names = ["100%", "it's", '"quoted"', "{a,b}", "NULL", "株式会社", "a\\b", "%s"]
    for name in names:
        JobFactory(tenant=name)

    assert sorted(store.lanes("default")) == sorted(names)
    assert sorted(job.tenant for job in claim(store, *names)) == sorted(names)


# -- what a claim answers ----------------------------------------------------------------------------------------------


def test_claim_answers_the_job_as_it_was_enqueued(store):
    """Everything that a worker needs comes with the one statement."""
    made = JobFactory(
        args='[1, "ä", 1e22]',
        kwargs='{"a":[null]}',
        metadata='{"user":3}',
        priority=5,
        max_attempts=7,
        last_error="ValueError: no",
        tenant="acme",
        task="tests.samples.add",
    )

    job = claim_one(store, "acme")

    assert (job.id, job.queue, job.tenant, job.task) == (made.pk, "default", "acme", "tests.samples.add")
    assert (job.args, job.kwargs, job.metadata) == (made.args, made.kwargs, made.metadata)
    assert (job.priority, job.attempts, job.max_attempts, job.lapses) == (5, 1, 7, 0)
    assert job.last_error == "ValueError: no"
    assert (job.ready_at, job.enqueued_at) == (made.ready_at, made.enqueued_at)
    assert job.lease_id == Lease.objects.get().pk


def test_attempt_is_counted_by_the_claim_itself(store):
    """A worker that dies at once has used an attempt all the same."""
    JobFactory(attempts=2)

    assert claim_one(store).attempts == 3
    row = Job.objects.get()
    assert (row.attempts, row.state, row.lease_id) == (3, JobState.LEASED, Lease.objects.get().pk)


def test_one_claim_opens_one_lease_for_all_its_jobs(store):
    """A batch of short jobs costs one lease row."""
    JobFactory.create_batch(5)

    jobs = claim(store)

    [lease] = Lease.objects.all()
    assert {job.lease_id for job in jobs} == {lease.pk}
    assert (lease.worker, lease.queue) == ("worker-1", "default")


def test_lease_ends_a_lease_after_the_claim(store):
    """Expiry and deadline are measured from the claim, by the clock of the database."""
    JobFactory()
    before = store.now()
    claim(store, lease=timedelta(seconds=10), max_lease=timedelta(minutes=5))
    after = store.now()

    [lease] = Lease.objects.all()
    assert before <= lease.acquired_at <= after
    assert lease.renewed_at == lease.acquired_at
    assert lease.expires_at - lease.acquired_at == timedelta(seconds=10)
    assert lease.deadline_at - lease.acquired_at == timedelta(minutes=5)


def test_lease_never_outlasts_its_cap(store):
    """A cap below the lease is a short lease, not a longer attempt."""
    JobFactory()

    claim(store, lease=timedelta(seconds=30), max_lease=timedelta(seconds=5))

    [lease] = Lease.objects.all()
    assert lease.expires_at == lease.deadline_at


def test_claimed_job_is_not_handed_to_a_second_worker(store):
    """One holder at a time."""
    JobFactory()
    claim_one(store)

    assert claim(store, worker="worker-2") == []


# -- order -------------------------------------------------------------------------------------------------------------


def test_higher_priority_first_then_due_time_then_enqueueing(store):
    """The order is defined, and the same on every database (django/new-features#188)."""
    late = JobFactory(ready_at=ago(seconds=10))
    low = JobFactory(priority=-5, ready_at=ago(hours=9))
    high = JobFactory(priority=5, ready_at=ago(seconds=5))
    early = JobFactory(ready_at=ago(hours=1))
    twin = JobFactory(ready_at=late.ready_at)

    expected = [high.pk, early.pk, late.pk, twin.pk, low.pk]
    assert [job.id for job in claim(store)] == expected


def test_order_holds_over_many_claims_of_one(store):
    """A slot at a time, the order is that of one large claim."""
    jobs = [JobFactory(priority=number % 7 - 3, ready_at=ago(seconds=number % 11)) for number in range(30)]
    expected = sorted(jobs, key=lambda job: (-job.priority, job.ready_at, job.pk))

    assert [claim_one(store).id for _ in range(30)] == [job.pk for job in expected]


def test_retried_job_waits_behind_what_became_ready_before_it(store):
    """Its readiness is its next try, so that a failing job does not block its lane."""
    first = JobFactory(ready_at=ago(minutes=2))
    second = JobFactory(ready_at=ago(minutes=1))
    fail(store, claim_one(store), Retry(timedelta(seconds=5)))
    store.shift(6)
    store.promote()

    assert [job.id for job in claim(store)] == [second.pk, first.pk]


def test_released_job_keeps_its_place(store):
    """It was never run; those behind it must not pass."""
    first, second = JobFactory(ready_at=ago(minutes=2)), JobFactory(ready_at=ago(minutes=1))
    job = claim_one(store)
    store.release(job.lease_id, [job.id], last=True)

    assert [job.id for job in claim(store)] == [first.pk, second.pk]


def test_limit_and_quantum_bound_a_claim(store):
    """At most the limit in all, and at most the quantum of one lane."""
    for tenant in "abc":
        JobFactory.create_batch(5, tenant=tenant)

    taken = claim(store, "a", "b", "c", limit=5, quantum=2)

    assert [job.tenant for job in taken] == ["a", "a", "b", "b", "c"]


def test_lanes_are_served_in_the_order_of_their_turn(store):
    """The caller's order counts, not the alphabet's; priority does not cross lanes."""
    for tenant, priority in (("a", 100), ("b", -100), ("c", 0)):
        JobFactory(tenant=tenant, priority=priority)

    assert [job.tenant for job in claim(store, "c", "a", "b")] == ["c", "a", "b"]


def test_empty_lane_takes_nothing_from_the_others(store):
    """A lane that was remembered and is empty by now costs a look."""
    JobFactory.create_batch(3, tenant="b")

    assert len(claim(store, "a", "b", limit=3, quantum=3)) == 3


# -- marks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", [0, 7, 100, -100])
def test_mark_hides_nothing_that_lies_behind_it(store, priority):
    """A claim after a mark finds all that became ready since, on every priority."""
    mark = store.now() - timedelta(minutes=5)
    JobFactory(priority=priority, ready_at=mark)
    JobFactory(priority=priority, ready_at=mark + timedelta(microseconds=1))
    others = {JobFactory(priority=level, ready_at=mark - timedelta(days=1)).pk for level in (-99, 3, 99)}
    rank = -priority
    segments = [Segment(FIRST_RANK, None, rank - 1)] if rank > FIRST_RANK else []
    segments.append(Segment(rank, mark, LAST_RANK))

    taken = claim(store, lanes=[LaneTurn("", tuple(segments))])

    assert len(taken) == 5
    assert others < {job.id for job in taken}
    assert [job.priority for job in taken] == sorted((job.priority for job in taken), reverse=True)


def test_quantum_counts_over_all_segments_of_a_lane(store):
    """A lane that is cut into stretches gets no more than others."""
    for priority in (5, 0, -5):
        JobFactory.create_batch(3, priority=priority)
    segments = (Segment(-100, None, -1), Segment(0, None, 4), Segment(5, None, 100))

    taken = claim(store, lanes=[LaneTurn("", segments)], quantum=4)

    assert [job.priority for job in taken] == [5, 5, 5, 0]


# -- suspects ----------------------------------------------------------------------------------------------------------


def test_job_whose_lease_lapsed_is_claimed_alone(store):
    """If it was the one that killed its worker, it takes nobody with it the next time."""
    suspect = JobFactory(ready_at=ago(hours=1))
    claim_one(store)
    lapse_all(store)
    JobFactory.create_batch(3)

    first, second = store.claim(order()), store.claim(order())

    assert [job.id for job in first.jobs] == [suspect.pk]
    assert (first.cut, second.cut) == (True, False)
    assert len(second.jobs) == 3


def test_claim_is_cut_before_a_suspect(store):
    """Those in front of it come without it."""
    JobFactory.create_batch(2, ready_at=ago(hours=2))
    suspect = JobFactory(lapses=1, ready_at=ago(hours=1))
    JobFactory.create_batch(2, ready_at=ago(minutes=1))

    batches = [claim(store) for _ in range(3)]

    assert [len(batch) for batch in batches] == [2, 1, 2]
    assert batches[1][0].id == suspect.pk


def test_suspects_of_one_lapse_come_back_one_by_one(store):
    """A batch of ten lapsed; one of them is the culprit, and each is tried alone."""
    JobFactory.create_batch(4)
    claim(store)
    lapse_all(store)

    assert [len(claim(store)) for _ in range(5)] == [1, 1, 1, 1, 0]


def test_failure_clears_the_suspicion(store):
    """A job that came to an outcome has not killed its worker."""
    JobFactory(lapses=2)
    fail(store, claim_one(store), NO_DELAY)

    assert claim_one(store).lapses == 0


def test_suspect_that_lapses_alone_can_die(store):
    """The judge is told that nobody shared the lease."""
    JobFactory(max_attempts=1)
    claim_one(store)
    seen = []

    def judge(lapse):
        seen.append(lapse)
        return Bury(DeathReason.EXHAUSTED)

    lapse_all(store, to=judge)

    assert [(lapse.shared, lapse.lapses, lapse.attempts) for lapse in seen] == [(False, 1, 1)]
    assert not Job.objects.exists()
