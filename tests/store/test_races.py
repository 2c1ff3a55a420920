"""Two at the same moment: whoever comes first, every job ends up in exactly one hand and in exactly one place."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial

import pytest

from django_workqueue.domain.ids import new_id
from django_workqueue.domain.steps import idempotency_key
from django_workqueue.exceptions import DuplicateJobError, WorkQueueError
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Lease, Step
from django_workqueue.store import store_for
from django_workqueue.store.steps import StepRequest
from tests import samples
from tests.claims import bury, claim, claim_one, complete, fail, put_back
from tests.factories import DeadLetterFactory, JobFactory, StepFactory
from tests.racing import flat, race

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 8


def prepared():
    """Return a store as a worker in its own thread has it."""
    made = store_for()
    made.prepare()
    return made


def places(job_id) -> int:
    """Return in how many of the three tables a job is."""
    return sum(model.objects.filter(pk=job_id).exists() for model in (Job, FinishedJob, DeadLetter))


def lapsed_job(store, **claim_options):
    """Return a claimed job whose lease has just run out."""
    JobFactory()
    job = claim_one(store, **claim_options)
    store.shift(31)
    return job


@pytest.mark.parametrize("batch", [1, 7])
def test_claims_never_overlap(store, batch):
    """Eight claimers, each job in one hand, and no error in normal contention (knifecake/steady-queue#25)."""
    Job.objects.bulk_create(JobFactory.build(tenant=f"t{number % 3}") for number in range(80))

    def work():
        mine = prepared()
        taken = []
        while jobs := claim(mine, "t0", "t1", "t2", limit=batch, quantum=batch):
            taken += [job.id for job in jobs]
        return taken

    taken = flat(race(*[work] * 4))

    assert len(taken) == 80
    assert set(taken) == set(Job.objects.values_list("pk", flat=True))
    assert set(Job.objects.values_list("attempts", flat=True)) == {1}


def test_losers_of_a_claim_see_other_jobs(store):
    """A claim skips what another has locked, and does not come back with nothing for it."""
    JobFactory.create_batch(40)

    counts = race(*[lambda: len(claim(prepared(), limit=10, quantum=10))] * 4)

    assert sum(counts) == 40


def test_each_lapsed_lease_is_reaped_once(store):
    """Every worker reaps at once, without a leader (procrastinate-org/procrastinate#1408)."""
    for _ in range(12):
        JobFactory()
        claim_one(store)
    store.shift(31)

    def work():
        mine = prepared()
        moved = []
        while reaped := mine.reap(put_back, limit=3):
            moved += [each.job_id for each in reaped]
        return moved

    race(*[work] * 4)
    prepared().reap(put_back)

    assert Failure.objects.count() == 12
    assert set(Job.objects.values_list("lapses", flat=True)) == {1}
    assert not Lease.objects.exists()


def test_of_twenty_begins_of_a_step_one_wins(store):
    """Its effect is nobody else's, and the others are shown who has it."""
    job_id = new_id()
    asked = StepRequest(
        tenant="",
        key=idempotency_key("", job_id, "charge"),
        digest="d" * 64,
        job_id=job_id,
        name="charge",
        worker="worker-1",
        lease_id=None,
        retention=timedelta(days=1),
    )

    answers = race(*[lambda: prepared().begin_step(asked)] * 20)

    assert [is_mine for _, is_mine in answers].count(True) == 1
    assert {step.pk for step, _ in answers} == set(Step.objects.values_list("pk", flat=True))


def test_of_twenty_who_find_a_step_unknown_one_begins_it_again(store):
    """With on_unknown="retry" one more call is made, not one for each."""
    stale = StepFactory(unknown=True)
    asked = StepRequest(
        tenant="",
        key=stale.key,
        digest=stale.digest,
        job_id=stale.job_id,
        name=stale.name,
        worker="worker-1",
        lease_id=None,
        retention=timedelta(days=1),
    )

    answers = race(*[lambda: prepared().begin_step_again(stale, asked)] * 20)

    assert [is_mine for _, is_mine in answers].count(True) == 1
    assert Step.objects.count() == 1


def test_renewal_and_reaper_never_both_win(store):
    """A lease is either renewed, and its job stays, or lost, and its job is back."""
    for _ in range(ROUNDS):
        JobFactory()
        job = claim_one(store)
        store.shift(29.998)

        renewed, reaped = race(
            lambda lease=job.lease_id: prepared().renew({lease: timedelta(seconds=30)}),
            lambda: prepared().reap(put_back),
        )

        row = Job.objects.get(pk=job.id)
        assert not (renewed and reaped)
        assert (row.lease_id == job.lease_id) == (not reaped)
        assert Lease.objects.filter(pk=job.lease_id).exists() == (not reaped)
        Job.objects.all().delete()
        Lease.objects.all().delete()


@pytest.mark.parametrize("report", [complete, fail, bury], ids=["complete", "fail", "bury"])
def test_report_and_reaper_never_both_win(store, report):
    """An attempt is recorded by its worker or by the reaper, and the job is in one place."""
    for _ in range(ROUNDS):
        JobFactory()
        job = claim_one(store)
        store.shift(29.998)

        reported, reaped = race(
            lambda job=job: report(prepared(), job),
            lambda: prepared().reap(put_back),
        )

        assert not (reported and reaped)
        assert places(job.id) == 1
        assert Failure.objects.filter(job_id=job.id).count() <= 1
        if reaped:
            assert Job.objects.get(pk=job.id).lapses == 1
        Job.objects.all().delete()
        Lease.objects.all().delete()


def test_completion_is_recorded_once_however_often_it_is_sent(store):
    """A repeat of a report whose answer was lost meets the first one."""
    JobFactory()
    job = claim_one(store)

    answers = race(*[lambda: complete(prepared(), job)] * 4)

    assert sorted(map(len, answers)) == [0, 0, 0, 1]
    assert FinishedJob.objects.count() == 1


def test_release_and_reaper_never_both_win(store):
    """The attempt is given back or counted, never both."""
    for _ in range(ROUNDS):
        JobFactory()
        job = claim_one(store)
        store.shift(29.998)

        race(
            lambda job=job: prepared().release(job.lease_id, [job.id], last=True),
            lambda: prepared().reap(put_back),
        )
        store.shift(5)
        store.reap(put_back)

        row = Job.objects.get(pk=job.id)
        assert row.lease_id is None
        assert row.attempts == Failure.objects.filter(job_id=job.id).count()
        Job.objects.all().delete()


def test_search_for_unknown_leases_and_reaper_never_both_win(store):
    """A worker that comes back looks for its own claims while others reap them."""
    for _ in range(ROUNDS):
        job = lapsed_job(store)

        race(lambda: prepared().release_unknown("worker-1", []), lambda: prepared().reap(put_back))

        row = Job.objects.get(pk=job.id)
        assert row.lease_id is None
        assert row.attempts == Failure.objects.filter(job_id=job.id).count()
        Job.objects.all().delete()


def test_two_enqueues_of_one_key_store_one_job(store):
    """The loser is answered with the winner's job, and neither sees an error (bensheldon/good_job#1599)."""
    for number in range(ROUNDS):
        results = race(*[lambda number=number: samples.bill.enqueue(number)] * 4)

        assert len({result.id for result in results}) == 1
        assert sorted(result.duplicate for result in results) == [False, True, True, True]
    assert Job.objects.count() == ROUNDS


def test_two_batches_with_the_same_keys_in_opposite_order_do_not_block_each_other(store):
    """No deadlock between callers whose batches overlap."""
    keys = [(number,) for number in range(900)]

    first, second = race(lambda: samples.bill.enqueue_many(keys), lambda: samples.bill.enqueue_many(keys[::-1]))

    assert [result.id for result in first] == [result.id for result in second[::-1]]
    assert Job.objects.count() == 900


def test_two_enqueues_of_one_id_store_one_job(store):
    """Both are answered with it."""
    job_id = JobFactory.build().pk

    results = race(*[lambda: samples.add.using(job_id=job_id).enqueue(1, 2)] * 4)

    assert {result.id for result in results} == {str(job_id)}
    assert Job.objects.count() == 1


def test_enqueue_of_a_key_whose_holder_ends_at_that_moment(store):
    """Answered with the old job or stored as a new one, never lost and never an error."""
    for _ in range(ROUNDS):
        first = samples.bill.enqueue(7)
        job = claim_one(store)

        _, second = race(lambda job=job: complete(prepared(), job), lambda: samples.bill.enqueue(7))

        assert second.duplicate == (second.id == first.id)
        assert Job.objects.filter(pk=second.id).exists() != second.duplicate
        Job.objects.all().delete()


def test_each_due_job_is_promoted_once(store):
    """Two promoters share the work and do not wait for each other."""
    Job.objects.bulk_create(JobFactory.build(state="scheduled", tenant=f"t{number}") for number in range(30))

    lanes = race(*[lambda: prepared().promote(limit=20)] * 3)

    assert Counter(flat([list(each) for each in lanes])).most_common(1)[0][1] == 1
    prepared().promote()
    assert Job.objects.ready().count() == 30


def test_dead_letter_is_requeued_once(store):
    """Two people press the button at the same moment."""
    letter = DeadLetterFactory()

    def press():
        try:
            return prepared().requeue(letter.pk, attempts=3).pk
        except LookupError:
            return None

    answers = race(press, press, press)

    assert sorted(map(str, answers)) == sorted([str(letter.pk), "None", "None"])
    assert places(letter.pk) == 1


def test_requeue_and_enqueue_of_one_id_leave_one_job(store):
    """A person puts it back while a caller sends it anew."""
    for _ in range(ROUNDS):
        letter = DeadLetterFactory()

        def put_it_back(pk=letter.pk):
            try:
                return prepared().requeue(pk, attempts=3).pk
            except WorkQueueError as error:
                return type(error).__name__

        requeued, _ = race(put_it_back, lambda pk=letter.pk: samples.add.using(job_id=pk).enqueue(1, 2))

        assert requeued in {letter.pk, "DuplicateJobError", "JobNotFoundError"}
        assert places(letter.pk) == 1


def test_requeue_of_one_key_by_two_dead_letters_leaves_one_live_job(store):
    """Two dead letters of one key come back at once: one of them is refused by name."""
    for _ in range(ROUNDS):
        letters = DeadLetterFactory.create_batch(2, dedupe_key="k")

        def put_back_letter(pk):
            try:
                return prepared().requeue(pk, attempts=3).pk
            except WorkQueueError as error:
                return type(error).__name__

        answers = race(*[lambda pk=letter.pk: put_back_letter(pk) for letter in letters])

        assert "DuplicateJobError" in answers
        assert Job.objects.count() == 1
        assert sum(places(letter.pk) for letter in letters) == 2
        Job.objects.all().delete()
        DeadLetter.objects.all().delete()


def test_job_is_claimed_before_it_moves_or_after(store):
    """Never in between: what a worker holds, it holds in the queue that it claimed from."""
    for _ in range(ROUNDS):
        job = JobFactory()

        was, claimed = race(partial(store_for().move, job.pk, queue="mail"), lambda: claim(prepared(), limit=1))

        assert bool(claimed) != (was is not None)
        stored = Job.objects.get(pk=job.pk)
        assert (stored.queue, stored.state) == (("default", "leased") if claimed else ("mail", "ready"))
        stored.delete()


def test_two_jobs_of_one_key_do_not_move_to_the_same_place(store):
    """One of them is told of the other."""
    for _ in range(ROUNDS):
        jobs = [JobFactory(queue=queue, dedupe_key="k") for queue in ("default", "slow")]

        def move(job_id):
            try:
                return store_for().move(job_id, queue="mail") is not None
            except DuplicateJobError:
                return False

        moved = race(*(partial(move, job.pk) for job in jobs))

        assert sorted(moved) == [False, True]
        assert Job.objects.filter(queue="mail").count() == 1
        Job.objects.all().delete()
