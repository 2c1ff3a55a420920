"""Reap, adopt, rescue, promote: work comes back from those who never did, and in time from those who wait."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.domain.outcomes import Bury, Retry
from django_workqueue.domain.states import DeathReason, FailureKind, JobState
from django_workqueue.models import DeadLetter, Failure, Job, Lease
from django_workqueue.store import reap as reaping
from tests.claims import claim, claim_one, complete, put_back
from tests.factories import JobFactory, LeaseFactory, ago

pytestmark = pytest.mark.django_db


def bury_all(_lapse) -> Bury:
    """Judge every lapse as the last one."""
    return Bury(DeathReason.EXHAUSTED)


# -- reap --------------------------------------------------------------------------------------------------------------


def test_lapsed_claim_comes_back_with_its_attempt_counted(store):
    """A dead worker's job is put back, and one try is used (RealOrangeOne/django-tasks#46)."""
    JobFactory(task="tests.samples.add", tenant="acme")
    job = claim_one(store, "acme")
    store.shift(31)

    [moved] = store.reap(put_back)

    assert (moved.job_id, moved.task, moved.queue, moved.tenant) == (job.id, "tests.samples.add", "default", "acme")
    assert (moved.worker, moved.kind, moved.attempts, moved.died) == ("worker-1", FailureKind.LAPSED, 1, None)
    assert not Lease.objects.exists()
    assert claim_one(store, "acme", worker="worker-2").attempts == 2


def test_lapse_is_a_failure_that_says_so(store):
    """A death by lease leaves an error to read, on the job and in its history."""
    JobFactory()
    job = claim_one(store)
    lease = Lease.objects.get()
    store.shift(31)
    store.reap(lambda lapse: Retry(timedelta(seconds=5)))

    [row] = Failure.objects.all()
    assert (row.job_id, row.attempt, row.kind, row.lease_id) == (job.id, 1, FailureKind.LAPSED, lease.pk)
    assert row.worker == "worker-1"
    assert "Worker lost" in row.message
    assert row.failed_at - row.started_at >= timedelta(seconds=31)
    assert row.next_try_at - row.failed_at == timedelta(seconds=5)
    assert "Worker lost" in Job.objects.get().last_error


def test_living_claim_is_left_alone(store):
    """Only what has lapsed is taken."""
    JobFactory()
    claim_one(store)
    store.shift(29)

    assert store.reap(put_back) == []
    assert Job.objects.get().state == JobState.LEASED


def test_judge_decides_between_another_try_and_the_dead_letters(store):
    """One rule for every store; it is told all that it needs."""
    JobFactory(max_attempts=4, attempts=2, lapses=1)
    job = claim_one(store)
    seen = []

    def judge(lapse):
        seen.append(lapse)
        return Bury(DeathReason.EXHAUSTED)

    store.shift(31)
    [moved] = store.reap(judge)

    [lapse] = seen
    assert (lapse.job_id, lapse.queue, lapse.attempts, lapse.max_attempts) == (job.id, "default", 3, 4)
    assert (lapse.lapses, lapse.shared, lapse.kind) == (2, False, FailureKind.LAPSED)
    assert moved.died == DeathReason.EXHAUSTED
    letter = DeadLetter.objects.get()
    assert (letter.attempts, letter.reason) == (3, DeathReason.EXHAUSTED)
    assert "Worker lost" in letter.last_error
    assert Failure.objects.get().next_try_at is None


def test_lapse_that_several_shared_is_told_to_the_judge(store):
    """The culprit is not known then."""
    JobFactory.create_batch(2)
    claim(store)
    seen = []
    store.shift(31)
    store.reap(lambda lapse: seen.append(lapse) or put_back(lapse))

    assert [lapse.shared for lapse in seen] == [True, True]


def test_lapses_in_a_row_are_counted(store):
    """From the second on the job itself is the suspect."""
    JobFactory()
    for expected in (1, 2, 3):
        claim_one(store)
        store.shift(31)
        store.reap(put_back)
        assert Job.objects.get().lapses == expected


def test_capped_lease_is_told_apart(store):
    """A job that ran too long has another remedy than a worker that was lost."""
    JobFactory()
    claim_one(store, max_lease=timedelta(seconds=20))
    store.shift(21)

    [moved] = store.reap(put_back)

    assert moved.kind == FailureKind.CAPPED
    assert "MAX_LEASE" in Failure.objects.get().message


def test_reaper_takes_a_bounded_number_of_leases(store):
    """A round stays short, however many workers died."""
    JobFactory.create_batch(5)
    for _ in range(5):
        claim_one(store)
    store.shift(31)

    assert [len(store.reap(put_back, limit=2)) for _ in range(4)] == [2, 2, 1, 0]


def test_lease_without_jobs_is_cleared_away(store):
    """Its jobs were settled one by one by a worker that died before it closed the lease."""
    JobFactory()
    job = claim_one(store)
    complete(store, job, last=False)
    store.shift(31)

    assert store.reap(put_back) == []
    assert not Lease.objects.exists()


def test_leases_without_jobs_do_not_hide_those_behind_them(store):
    """An empty answer means that nothing has lapsed."""
    LeaseFactory.create_batch(5, lapsed=True)
    JobFactory(lapsed=True)

    assert len(store.reap(put_back, limit=2)) == 1
    assert store.reap(put_back, limit=2) == []
    assert not Lease.objects.exists()


def test_one_reap_is_bounded_in_jobs(store, monkeypatch):
    """A transaction over thousands of jobs would hold up whoever waits for their rows."""
    monkeypatch.setattr(reaping, "MOST_JOBS", 3)
    for _ in range(3):
        JobFactory.create_batch(2)
        claim(store)
    store.shift(31)

    assert [len(store.reap(put_back)) for _ in range(3)] == [4, 2, 0]


def test_delayed_comeback_waits(store):
    """A judge that says "later" is obeyed."""
    JobFactory()
    claim_one(store)
    store.shift(31)
    store.reap(lambda lapse: Retry(timedelta(seconds=60)))

    assert claim(store) == []
    store.shift(61)
    store.promote()
    assert claim_one(store).attempts == 2


def test_fleets_with_different_leases_judge_each_lease_by_its_own(store):
    """What counts is on the lease row, never in the reaper's settings."""
    JobFactory.create_batch(2)
    claim_one(store, lease=timedelta(seconds=10))
    patient = claim_one(store, lease=timedelta(seconds=100))
    store.shift(50)

    assert len(store.reap(put_back)) == 1
    assert Job.objects.get(pk=patient.id).state == JobState.LEASED


# -- adopt -------------------------------------------------------------------------------------------------------------


def test_adoption_returns_at_once_what_a_restarted_worker_held(store):
    """No lease has to run out; the attempt counts, and the history says why it ended."""
    JobFactory.create_batch(2)
    jobs = claim(store)

    moved = store.adopt(["worker-1"], put_back)

    assert {each.job_id for each in moved} == {job.id for job in jobs}
    assert {each.kind for each in moved} == {FailureKind.ADOPTED}
    assert set(Failure.objects.values_list("kind", flat=True)) == {FailureKind.ADOPTED}
    assert "restarted" in Failure.objects.first().message
    assert claim_one(store).attempts == 2


def test_adoption_is_whole_however_much_the_worker_held(store, monkeypatch):
    """Nothing is left to wait for its lease."""
    monkeypatch.setattr(reaping, "MOST_JOBS", 3)
    LeaseFactory(worker="worker-1")
    for _ in range(3):
        JobFactory.create_batch(2)
        claim(store)

    assert len(store.adopt(["worker-1"], put_back)) == 6
    assert not Lease.objects.exists()


def test_adoption_leaves_other_workers_alone(store):
    """Only the named worker is known to be gone."""
    JobFactory()
    claim_one(store)

    assert store.adopt(["worker-2"], put_back) == []
    assert store.adopt([], put_back) == []
    assert Job.objects.get().state == JobState.LEASED


def test_adoption_can_bury(store):
    """A job that used its last attempt in the worker that was restarted."""
    JobFactory()
    claim_one(store)

    [moved] = store.adopt(["worker-1"], bury_all)

    assert moved.died == DeathReason.EXHAUSTED
    assert DeadLetter.objects.exists()


# -- rescue ------------------------------------------------------------------------------------------------------------


def test_job_whose_lease_row_is_gone_is_rescued(store):
    """A hand that deletes leases leaves jobs that no reaper finds by them."""
    JobFactory.create_batch(2)
    orphan, held = claim_one(store), claim_one(store)
    Lease.objects.filter(pk=orphan.lease_id).delete()

    assert len(store.rescue_orphans().ids) == 1

    row = Job.objects.get(pk=orphan.id)
    assert (row.state, row.lease_id, row.attempts) == (JobState.READY, None, 1)
    assert Job.objects.get(pk=held.id).state == JobState.LEASED
    assert store.rescue_orphans().ids == set()


# -- promote -----------------------------------------------------------------------------------------------------------


def test_due_job_becomes_ready_and_keeps_its_due_time(store):
    """Its place in the queue is that of its time, not of the promotion's."""
    due = JobFactory(state=JobState.SCHEDULED, ready_at=ago(minutes=5), tenant="acme")
    later = JobFactory(scheduled=True)

    assert store.promote() == {("default", "acme")}

    assert list(Job.objects.ready()) == [due]
    assert list(Job.objects.scheduled()) == [later]
    assert Job.objects.get(pk=due.pk).ready_at == due.ready_at


def test_nothing_due_promotes_nothing(store):
    """No lanes to wake."""
    JobFactory(scheduled=True)

    assert store.promote() == set()


def test_promotion_is_bounded_and_takes_the_earliest_first(store):
    """A million jobs due at midnight come in portions."""
    jobs = [JobFactory(state=JobState.SCHEDULED, ready_at=ago(minutes=number)) for number in range(1, 6)]

    store.promote(limit=2)

    assert set(Job.objects.ready()) == {jobs[4], jobs[3]}


def test_next_due_says_how_long_to_sleep(store):
    """A delayed job starts on time and not at the next poll."""
    assert store.next_due() is None
    JobFactory(scheduled=True)
    assert abs(store.next_due() - timedelta(hours=1)) < timedelta(seconds=10)
    JobFactory(state=JobState.SCHEDULED, ready_at=ago(seconds=5))
    assert store.next_due() < timedelta()


def test_ready_jobs_are_not_due(store):
    """Only scheduled ones are waited for."""
    JobFactory()

    assert store.next_due() is None
