"""Endings of a claim: each is written behind the fence, or not at all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.domain.outcomes import Bury, Retry
from django_workqueue.domain.states import DeathReason, Ending, FailureKind, JobState
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Lease
from django_workqueue.models.base import COPIED
from tests.claims import NO_DELAY, bury, claim, claim_one, complete, fail, failed, put_back, succeeded
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db

LEASE = timedelta(seconds=30)


def places(job_id) -> tuple[bool, bool, bool]:
    """Tell in which of the three tables a job is."""
    return tuple(model.objects.filter(pk=job_id).exists() for model in (Job, FinishedJob, DeadLetter))


def columns(row) -> dict:
    """Return what travels with a job."""
    return {name: getattr(row, name) for name in COPIED}


# -- complete ----------------------------------------------------------------------------------------------------------


def test_completed_job_moves_out_of_the_live_table(store):
    """It is never handed out again; its size is no longer the claim's concern."""
    made = JobFactory()

    assert complete(store, claim_one(store)) == {made.pk}

    assert places(made.pk) == (False, True, False)
    assert claim(store) == []


def test_finished_row_is_the_whole_job(store):
    """Everything that it was, and how it ended."""
    made = JobFactory(
        tenant="acme", metadata='{"user":3}', priority=4, dedupe_key="k", last_error="E: x", interruptions=2
    )
    job = claim_one(store, "acme")
    store.complete(job.lease_id, [succeeded(job, '{"sum":3}')], worker="web1:4", last=True)

    row = FinishedJob.objects.get()
    assert columns(row) == columns(made) | {"attempts": 1}
    assert (row.outcome, row.result, row.worker) == (Ending.SUCCEEDED, '{"sum":3}', "web1:4")
    assert row.finished_at - row.started_at == timedelta(seconds=0.5)
    assert abs(store.now() - row.finished_at) < timedelta(seconds=10)


def test_retention_says_how_long_a_finished_job_is_kept(store):
    """From the moment of its end."""
    JobFactory()
    job = claim_one(store)
    store.complete(job.lease_id, [succeeded(job, retention=timedelta(hours=3))], worker="w", last=True)

    row = FinishedJob.objects.get()
    assert row.expires_at - row.finished_at == timedelta(hours=3)


def test_no_retention_keeps_no_row(store):
    """The job and its failures are gone in the completing transaction."""
    JobFactory()
    fail(store, claim_one(store))
    job = claim_one(store)
    assert store.complete(job.lease_id, [succeeded(job, retention=timedelta())], worker="w", last=True) == {job.id}

    assert places(job.id) == (False, False, False)
    assert not Failure.objects.exists()


def test_batch_with_mixed_retention_keeps_what_is_to_be_kept(store):
    """One statement settles jobs of several tasks."""
    kept, dropped = JobFactory(), JobFactory()
    jobs = {job.id: job for job in claim(store)}
    done = [succeeded(jobs[kept.pk]), succeeded(jobs[dropped.pk], retention=timedelta())]

    assert store.complete(done[0].job.lease_id, done, worker="w", last=True) == {kept.pk, dropped.pk}
    assert [row.pk for row in FinishedJob.objects.all()] == [kept.pk]


def test_results_stay_with_their_jobs(store):
    """A batch does not mix up whose result is whose."""
    JobFactory.create_batch(20)
    jobs = claim(store, limit=20, quantum=20)
    store.complete(jobs[0].lease_id, [succeeded(job, f'"{job.id}"') for job in reversed(jobs)], worker="w", last=True)

    assert {f'"{row.pk}"' for row in FinishedJob.objects.all()} == {row.result for row in FinishedJob.objects.all()}
    assert all(row.result == f'"{row.pk}"' for row in FinishedJob.objects.all())


def test_lease_goes_with_its_last_job_and_not_before(store):
    """While one job is in hand the lease is needed."""
    JobFactory.create_batch(2)
    first, second = claim(store)

    complete(store, first, last=False)
    assert Lease.objects.exists()
    complete(store, second, last=True)
    assert not Lease.objects.exists()


def test_completion_leaves_other_jobs_of_the_lease(store):
    """Only what is named is settled."""
    JobFactory.create_batch(2)
    first, second = claim(store)

    complete(store, first, last=False)

    assert places(second.id) == (True, False, False)


def test_key_is_free_after_completion(store):
    """The unique key belongs to live jobs only."""
    JobFactory(dedupe_key="k")
    complete(store, claim_one(store))

    assert JobFactory(dedupe_key="k").pk


def test_completing_twice_is_refused_the_second_time(store):
    """A repeated report changes nothing."""
    JobFactory()
    job = claim_one(store)

    assert complete(store, job) == {job.id}
    assert complete(store, job) == set()
    assert FinishedJob.objects.count() == 1


# -- the fence ---------------------------------------------------------------------------------------------------------


def stale(store):
    """Claim a job whose lease lapses, is reaped, and is taken by another worker; return both claims."""
    JobFactory()
    old = claim_one(store)
    store.shift(31)
    store.reap(put_back)
    return old, claim_one(store, worker="worker-2")


@pytest.mark.parametrize(
    "report",
    [
        complete,
        fail,
        bury,
        lambda store, job: store.release(job.lease_id, [job.id], last=True).ids,
        lambda store, job: store.renew({job.lease_id: LEASE}),
    ],
    ids=["complete", "fail", "bury", "release", "renew"],
)
def test_stale_worker_is_refused_in_everything(store, report):
    """What a worker reports of a job that is another's by now leaves no trace."""
    old, new = stale(store)
    before = (Job.objects.values().get(), list(Lease.objects.values()), Failure.objects.count())

    assert not report(store, old)

    assert (Job.objects.values().get(), list(Lease.objects.values()), Failure.objects.count()) == before
    assert places(old.id) == (True, False, False)
    assert complete(store, new, worker="worker-2") == {new.id}


@pytest.mark.parametrize("report", [complete, fail, bury], ids=["complete", "fail", "bury"])
def test_lapsed_lease_is_refused_before_anybody_has_reaped_it(store, report):
    """The clock of the database decides, not the reaper's punctuality."""
    JobFactory()
    job = claim_one(store)
    store.shift(31)

    assert not report(store, job)

    assert places(job.id) == (True, False, False)
    assert Lease.objects.exists()
    assert not Failure.objects.exists()


def test_lapsed_lease_stays_for_the_reaper(store):
    """A late report of the last job must not take the lease away: the reaper finds the jobs by it."""
    JobFactory.create_batch(2)
    jobs = claim(store)
    store.shift(31)

    complete(store, *jobs, last=True)

    assert len(store.reap(put_back)) == 2


def test_completing_what_was_never_claimed_is_refused(store):
    """A job that waits cannot be acknowledged by its id alone."""
    made = JobFactory()
    other = JobFactory(queue="mail")
    claimed = claim_one(store, queue="mail")

    assert complete(store, claimed._replace(id=made.pk)) == set()
    assert places(made.pk) == places(other.pk) == (True, False, False)


def test_holder_is_the_lease_and_not_the_workers_name(store):
    """An old thread of the same name cannot complete the newer claim."""
    JobFactory()
    old = claim_one(store)
    store.shift(31)
    store.reap(put_back)
    claim_one(store)

    assert complete(store, old) == set()


def test_batch_is_settled_as_far_as_it_is_held(store):
    """One job of the batch was taken away by hand; the others are recorded."""
    JobFactory.create_batch(3)
    jobs = claim(store)
    Job.objects.filter(pk=jobs[1].id).update(state=JobState.READY, lease=None)

    assert complete(store, *jobs) == {jobs[0].id, jobs[2].id}
    assert places(jobs[1].id) == (True, False, False)


# -- fail --------------------------------------------------------------------------------------------------------------


def test_failed_attempt_is_appended_to_the_history(store):
    """One row each time, with all that a person needs."""
    JobFactory()
    job = claim_one(store)
    settlement = failed(job, "no paper", traceback="Traceback ...", run_seconds=2.0)
    assert store.fail(settlement, Retry(timedelta(seconds=4)), worker="web1:4", last=True)

    [row] = Failure.objects.all()
    assert (row.job_id, row.attempt, row.kind) == (job.id, 1, FailureKind.ERROR)
    assert (row.error_class, row.message, row.traceback) == (
        "tests.samples.OutOfPaperError",
        "no paper",
        "Traceback ...",
    )
    assert (row.worker, row.lease_id) == ("web1:4", job.lease_id)
    assert row.failed_at - row.started_at == timedelta(seconds=2)
    assert row.next_try_at - row.failed_at == timedelta(seconds=4)


def test_failed_job_waits_for_its_next_try(store):
    """It is scheduled for then, carries its last error, and holds no lease."""
    JobFactory()
    fail(store, claim_one(store), Retry(timedelta(seconds=4)))

    row = Job.objects.get()
    assert (row.state, row.lease_id, row.attempts) == (JobState.SCHEDULED, None, 1)
    assert row.ready_at == Failure.objects.get().next_try_at
    assert row.last_error == "OutOfPaperError: no paper"
    assert claim(store) == []
    assert not Lease.objects.exists()


def test_retry_without_delay_is_ready_at_once(store):
    """Zero seconds are not worth a promotion."""
    JobFactory()
    fail(store, claim_one(store), NO_DELAY)

    assert claim_one(store).attempts == 2


def test_next_attempt_knows_the_last_error(store):
    """Whichever process gets the job next."""
    JobFactory()
    fail(store, claim_one(store), message="the printer is on fire")

    assert claim_one(store, worker="worker-2").last_error == "OutOfPaperError: the printer is on fire"


def test_uncounted_failure_gives_the_attempt_back(store):
    """An interruption or an unknown task uses nothing up."""
    JobFactory()
    fail(store, claim_one(store), Retry(timedelta(), counted=False), kind=FailureKind.INTERRUPTED)

    row = Job.objects.get()
    assert (row.attempts, row.interruptions) == (0, 1)
    assert Failure.objects.get().attempt == 1


def test_buried_job_is_a_dead_letter_with_its_whole_history(store):
    """The last error is not thrown away, nor any before it (que-rb/que#438)."""
    made = JobFactory(max_attempts=3, tenant="acme", dedupe_key="k")
    for number in (1, 2):
        fail(store, claim_one(store, "acme"), message=f"error {number}")
    store.fail(
        failed(claim_one(store, "acme"), "error 3", traceback="Traceback ..."),
        Bury(DeathReason.EXHAUSTED),
        worker="web1:4",
        last=True,
    )

    assert places(made.pk) == (False, False, True)
    letter = DeadLetter.objects.get()
    assert columns(letter) == columns(made) | {"attempts": 3, "last_error": "OutOfPaperError: error 3"}
    assert (letter.reason, letter.acknowledged_at) == (DeathReason.EXHAUSTED, None)
    assert [(failure.attempt, failure.message) for failure in letter.failures] == [
        (1, "error 1"),
        (2, "error 2"),
        (3, "error 3"),
    ]
    assert letter.failures.last().next_try_at is None


def test_single_permitted_attempt_leaves_its_error(store):
    """With one attempt the first error is the last one."""
    JobFactory(max_attempts=1)
    bury(store, claim_one(store), message="no paper")

    assert DeadLetter.objects.get().last_error == "OutOfPaperError: no paper"


def test_dead_job_is_never_handed_out(store):
    """It stays until a person decides."""
    JobFactory()
    bury(store, claim_one(store))

    assert claim(store) == []
    assert store.lanes("default") == []


def test_success_cannot_be_settled_as_a_failure(store):
    """Nor the other way round: the two verbs write to different tables."""
    JobFactory()
    job = claim_one(store)

    with pytest.raises(TypeError, match="complete"):
        store.fail(succeeded(job), NO_DELAY, worker="w", last=True)
    with pytest.raises(TypeError, match="fail"):
        store.complete(job.lease_id, [failed(job)], worker="w", last=True)


# -- release -----------------------------------------------------------------------------------------------------------


def test_released_jobs_are_as_if_never_claimed(store):
    """The attempt is given back and nobody else needs to wait for the lease."""
    JobFactory.create_batch(2)
    jobs = claim(store)

    assert store.release(jobs[0].lease_id, [jobs[0].id], last=False).ids == {jobs[0].id}

    row = Job.objects.get(pk=jobs[0].id)
    assert (row.state, row.attempts, row.lease_id, row.interruptions) == (JobState.READY, 0, None, 0)
    assert Job.objects.get(pk=jobs[1].id).state == JobState.LEASED
    assert Lease.objects.exists()


def test_claim_whose_answer_was_lost_is_given_back(store):
    """The connection broke after the commit: the worker holds jobs that it does not know of."""
    JobFactory.create_batch(2)
    known = claim_one(store)
    JobFactory(queue="mail")
    unknown = claim_one(store, queue="mail")
    elsewhere = claim_one(store, worker="worker-2")

    assert store.release_unknown("worker-1", {known.lease_id}).ids == {unknown.id}

    row = Job.objects.get(pk=unknown.id)
    assert (row.state, row.attempts, row.lease_id) == (JobState.READY, 0, None)
    assert set(Job.objects.leased().values_list("pk", flat=True)) == {known.id, elsewhere.id}
    assert store.release_unknown("worker-1", {known.lease_id}).ids == set()


# -- renew -------------------------------------------------------------------------------------------------------------


def test_renewal_extends_from_now(store):
    """A living worker keeps its claim for as long as it lives: job length and lease length are independent."""
    JobFactory()
    job = claim_one(store)
    for _ in range(4):
        store.shift(20)
        assert store.renew({job.lease_id: LEASE}) == {job.lease_id}

    assert store.reap(put_back) == []
    assert complete(store, job) == {job.id}


def test_renewal_never_shortens_a_lease(store):
    """A beat with a shorter length, from a worker with other settings, leaves the longer one."""
    JobFactory()
    job = claim_one(store, lease=timedelta(seconds=120))
    before = Lease.objects.get().expires_at

    store.renew({job.lease_id: timedelta(seconds=30)})

    assert Lease.objects.get().expires_at == before


def test_renewal_never_passes_the_deadline(store):
    """The hard cap ends every attempt."""
    JobFactory()
    job = claim_one(store, max_lease=timedelta(seconds=40))
    store.shift(25)
    store.renew({job.lease_id: LEASE})

    lease = Lease.objects.get()
    assert lease.expires_at == lease.deadline_at
    store.shift(16)
    assert store.renew({job.lease_id: LEASE}) == set()
    assert complete(store, job) == set()


def test_renewal_answers_which_leases_hold(store):
    """Those that are missing from the answer are lost."""
    JobFactory.create_batch(2)
    lapsed = claim_one(store)
    store.shift(31)
    alive = claim_one(store)

    assert store.renew({lapsed.lease_id: LEASE, alive.lease_id: LEASE, 987654: LEASE}) == {alive.lease_id}


def test_each_lease_is_renewed_by_its_own_length(store):
    """Queues have leases of different lengths."""
    JobFactory.create_batch(2)
    short, long = claim_one(store), claim_one(store)

    store.renew({short.lease_id: timedelta(seconds=60), long.lease_id: timedelta(seconds=600)})

    lengths = {lease.pk: lease.expires_at - lease.renewed_at for lease in Lease.objects.all()}
    assert lengths == {short.lease_id: timedelta(seconds=60), long.lease_id: timedelta(seconds=600)}


# -- why a claim was lost ----------------------------------------------------------------------------------------------


def test_loss_is_explained(store):
    """Expired, taken by whom, or capped."""
    JobFactory()
    job = claim_one(store)
    store.shift(31)
    assert store.loss(job.lease_id, job.id) == ("expired", "")
    store.reap(put_back)
    assert store.loss(job.lease_id, job.id) == ("expired", "")
    claim_one(store, worker="worker-2")
    assert store.loss(job.lease_id, job.id) == ("taken", "worker-2")


def test_loss_by_the_cap_is_told_apart(store):
    """Before the reaper came and after it."""
    JobFactory()
    job = claim_one(store, max_lease=timedelta(seconds=20))
    store.shift(21)
    assert store.loss(job.lease_id, job.id) == ("capped", "")
    store.reap(put_back)
    assert store.loss(job.lease_id, job.id) == ("capped", "")


# -- after a commit whose answer was lost ------------------------------------------------------------------------------


def test_what_was_recorded_can_be_asked(store):
    """A worker that does not know whether its commit went through looks before it reports again."""
    for _ in range(3):
        JobFactory()
    done, lost, pending = (claim_one(store) for _ in range(3))
    complete(store, done)
    fail(store, lost)

    assert store.recorded([done, lost, pending], "worker-1") == {done.id, lost.id}


def test_failure_under_an_earlier_lease_is_not_this_attempts(store):
    """A job that failed before beside another job of the batch has not been settled by that."""
    JobFactory.create_batch(2)
    first, other = claim(store)
    fail(store, first, last=False)
    again = claim_one(store)
    assert again.id == first.id

    assert store.recorded([again, other], "worker-1") == set()


def test_patience_with_an_unknown_task_counts_from_the_first_time(store):
    """How often, and since when, this attempt was put off."""
    JobFactory()
    assert store.put_off_since(claim_one(store).id, 1) == (0, None)
    store.release_unknown("worker-1", [])
    for _ in range(3):
        fail(store, claim_one(store), Retry(timedelta(), counted=False), kind=FailureKind.UNKNOWN_TASK)

    job = claim_one(store)
    assert store.put_off_since(job.id, 1) == (3, Failure.objects.earliest("id").failed_at)
    assert store.put_off_since(job.id, 2) == (0, None)
