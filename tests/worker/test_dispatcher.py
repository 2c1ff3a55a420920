"""The dispatcher: claims what can be started, settles what came of it, gives back the rest."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

import pytest

from django_workqueue.domain.states import FailureKind, JobState, PauseKind
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Lease, QueueMinute
from django_workqueue.worker import dispatcher as module
from tests import samples
from tests.claims import claim_one, put_back
from tests.factories import JobFactory, QueueFactory

from .bench import Bench
from .jobs import running

pytestmark = pytest.mark.django_db


# -- claiming ----------------------------------------------------------------------------------------------------------


def test_one_job_is_claimed_for_each_free_slot(store):
    """No more than can be started, each under its own lease, until it is known how long they take."""
    JobFactory.create_batch(5)
    bench = Bench(concurrency=3)

    bench.round()

    assert Job.objects.leased().count() == Lease.objects.count() == bench.board.waiting == 3


def test_busy_slots_claim_nothing(store):
    """The others are for whoever is idle (OasisLMF/OasisPlatform PR#436)."""
    JobFactory.create_batch(5)
    bench = Bench(concurrency=2)
    bench.round()
    bench.start()
    bench.round()

    assert Job.objects.ready().count() == 3


def test_quiet_worker_claims_nothing_and_does_not_end(store):
    """What it has goes on; told to work again, it claims what waited, also with a number of jobs to do."""
    JobFactory.create_batch(3)
    bench = Bench(concurrency=1, max_jobs=2)
    bench.round()
    [first] = bench.start()

    bench.dispatcher.quiet = True
    bench.finish(first)
    bench.round()
    assert bench.dispatcher.standing == "quiet"
    assert (Job.objects.ready().count(), Job.objects.leased().count()) == (2, 0)
    assert not bench.dispatcher._is_done()
    assert bench.dispatcher._seconds_to_wait() > 0

    bench.dispatcher.quiet = False
    bench.round()
    assert Job.objects.leased().count() == 1


def test_short_jobs_are_claimed_ahead_in_batches(store):
    """One lease for many, once they are known to be short."""
    Job.objects.bulk_create(JobFactory.build() for _ in range(60))
    bench = Bench(concurrency=2)
    bench.round()
    bench.dispatcher._pace.ran(0.0001)
    bench.dispatcher._claim()

    assert Job.objects.leased().count() == 60
    assert Lease.objects.count() == 3


def test_claimed_job_that_gets_no_slot_is_given_back(store, monkeypatch):
    """It was claimed ahead of a job that proved slow; its attempt is not counted."""
    monkeypatch.setattr(module, "STALE_SECONDS", 0.0)
    JobFactory.create_batch(2)
    bench = Bench(concurrency=2)
    bench.round()
    assert Job.objects.leased().count() == 2

    bench.dispatcher._release(0.0)

    assert set(Job.objects.values_list("state", "attempts")) == {(JobState.READY, 0)}
    assert not Lease.objects.exists()
    assert len(bench.held) == 0


def test_job_that_was_given_back_is_found_again(store):
    """It lies before the mark that its own claim left."""
    JobFactory()
    bench = Bench()
    bench.round()
    bench.dispatcher._release(0.0)

    assert bench.work() == 1


def test_paused_queue_is_not_claimed_from(store):
    """Others go on; it is served again when it is resumed."""
    QueueFactory(name="mail", paused=True)
    JobFactory(queue="mail")
    JobFactory(queue="default")
    bench = Bench()
    assert bench.work() == 1
    store.resume(PauseKind.QUEUE, "mail")
    bench.dispatcher.lanes._pauses_seen -= 2
    bench.dispatcher._walk_at = 0.0

    assert bench.work() == 1
    assert not Job.objects.exists()


def test_only_the_queues_that_are_served_are_claimed_from(store):
    """By pattern and exclusion."""
    for queue in ("mail", "mailing", "default"):
        JobFactory(queue=queue)
    bench = Bench(queues=("mail*",), exclude_queues=("mailing",))

    bench.work()

    assert set(Job.objects.values_list("queue", flat=True)) == {"mailing", "default"}


def test_queues_share_the_slots_in_turns(store):
    """A full queue does not starve the others."""
    for queue in ("a", "b", "c"):
        JobFactory.create_batch(20, queue=queue)
    bench = Bench(concurrency=1)
    served = []
    for _ in range(6):
        bench.round()
        [job] = bench.start()
        served.append(job.queue)
        bench.finish(job)
        bench.dispatcher._pace.misjudged()

    assert sorted(served) == ["a", "a", "b", "b", "c", "c"]


def test_strict_order_empties_the_first_queue_first(store):
    """As the command line lists them."""
    for queue in ("low", "urgent"):
        JobFactory.create_batch(3, queue=queue)
    bench = Bench(concurrency=1, queues=("urgent", "low"), strict_order=True)
    served = []
    for _ in range(6):
        bench.round()
        [job] = bench.start()
        served.append(job.queue)
        bench.finish(job)
        bench.dispatcher._settler.settle()

    assert served == ["urgent"] * 3 + ["low"] * 3


def test_max_jobs_is_never_exceeded(store):
    """What was given back does not count."""
    JobFactory.create_batch(9)
    bench = Bench(concurrency=2, max_jobs=3)

    assert bench.work() == 3
    assert Job.objects.ready().count() == 6
    assert bench.dispatcher._is_done()


def test_burst_is_done_when_nothing_is_left(store):
    """Not before the last outcome is written."""
    JobFactory()
    bench = Bench(burst=True)
    bench.round()
    [job] = bench.start()
    assert not bench.dispatcher._is_done()
    bench.finish(job)
    bench.round()
    bench.round()

    assert bench.dispatcher._is_done()
    assert FinishedJob.objects.count() == 1


def test_idle_worker_sleeps_until_its_next_look(store):
    """At most the poll interval, a little less by chance."""
    bench = Bench(poll_interval=timedelta(seconds=10))
    bench.round()

    assert 7 < bench.dispatcher._seconds_to_wait() <= 10


def test_worker_with_free_slots_and_work_does_not_sleep(store):
    """There is something to claim."""
    JobFactory.create_batch(9)
    bench = Bench(concurrency=2)
    bench.round()
    assert bench.dispatcher._seconds_to_wait() <= module.FLUSH_SECONDS
    bench.finish(*bench.start())
    bench.dispatcher._settler.settle()

    assert bench.dispatcher._seconds_to_wait() == 0.0


# -- settling ----------------------------------------------------------------------------------------------------------


def test_outcomes_are_written_and_their_leases_closed(store):
    """Successes, failures and their counts."""
    JobFactory.create_batch(2, task="tests.samples.add")
    bench = Bench()
    bench.round()
    first, second = bench.start()
    bench.finish(first)
    bench.finish(second, fail=True)
    bench.dispatcher._settler.settle()

    assert FinishedJob.objects.get().pk == first.id
    assert Failure.objects.get().job_id == second.id
    assert Job.objects.get().state == JobState.SCHEDULED
    assert not Lease.objects.exists()
    assert (bench.tally.done, bench.tally.failed, len(bench.held)) == (1, 1, 0)


def test_report_on_a_lost_lease_is_refused_and_not_counted(store, caplog):
    """The other attempt is the one that counts."""
    JobFactory(task="tests.samples.add")
    bench = Bench()
    bench.round()
    [job] = bench.start()
    store.shift(31)
    store.reap(put_back)
    claim_one(store, worker="worker-2")
    bench.finish(job)

    with caplog.at_level(logging.WARNING):
        bench.dispatcher._settler.settle()

    assert "another worker holds the job (worker-2)" in caplog.text
    assert (bench.tally.done, FinishedJob.objects.count()) == (0, 0)
    assert job.lease_id in bench.held.known()
    assert len(bench.held) == 0


def test_failure_on_a_lost_lease_is_refused(store):
    """No second failure for one attempt."""
    JobFactory(task="tests.samples.add")
    bench = Bench()
    bench.round()
    [job] = bench.start()
    store.shift(31)
    bench.finish(job, fail=True)
    bench.dispatcher._settler.settle()

    assert (bench.tally.failed, Failure.objects.count()) == (0, 0)


def test_death_is_counted(store):
    """For the queue's counter and the minute's."""
    JobFactory(task="tests.samples.add", max_attempts=1)
    bench = Bench()
    bench.round()
    bench.finish(*bench.start(), fail=True)
    bench.dispatcher._settler.settle()

    assert DeadLetter.objects.exists()
    assert bench.tally.take_counts()["default"].dead == 1
    store.write_minutes(bench.tally.minutes())
    assert QueueMinute.objects.get().dead == 1


# -- stopping ----------------------------------------------------------------------------------------------------------


def test_stop_gives_back_what_has_not_started(store):
    """As if never claimed (timgit/pg-boss#102)."""
    JobFactory.create_batch(2)
    bench = Bench()
    bench.round()
    bench.dispatcher._drain()

    assert set(Job.objects.values_list("state", "attempts", "interruptions")) == {(JobState.READY, 0, 0)}
    assert not (Lease.objects.exists() or Failure.objects.exists())  # noqa: PT018 - nothing is left of the claim


def test_stop_records_what_has_ended(store):
    """Its outcome is there to be written."""
    JobFactory()
    bench = Bench()
    bench.round()
    bench.finish(*bench.start())
    bench.dispatcher._drain()

    assert FinishedJob.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_stop_lets_running_jobs_end_within_the_grace_time(store):
    """And keeps their leases meanwhile."""
    JobFactory()
    bench = Bench(shutdown_timeout=timedelta(seconds=30))
    bench.round()
    [job] = bench.start()
    assert bench.dispatcher._guarded(bench.dispatcher._give_back_unstarted)
    with running(threading.Timer(0.05, lambda: bench.finish(job)), lambda: None):
        bench.dispatcher._drain()

    assert FinishedJob.objects.count() == 1
    assert not Failure.objects.exists()


def test_second_request_ends_the_grace_time(store):
    """An impatient operator (procrastinate-org/procrastinate PR#366)."""
    JobFactory()
    bench = Bench(shutdown_timeout=timedelta(hours=1))
    bench.round()
    bench.start()
    bench.stop.request()
    bench.stop.request()
    bench.dispatcher._drain()

    assert Failure.objects.get().kind == FailureKind.INTERRUPTED


def test_stop_gives_running_jobs_back_as_interrupted(store):
    """At the end of grace, at once, and no attempt is used up (riverqueue/river PR#1289)."""
    JobFactory(max_attempts=1)
    bench = Bench()
    bench.round()
    bench.start()
    bench.dispatcher._drain()

    row = Job.objects.get()
    assert (row.state, row.attempts, row.interruptions, row.lease_id) == (JobState.READY, 0, 1, None)
    assert Failure.objects.get().kind == FailureKind.INTERRUPTED
    assert not Lease.objects.exists()


def test_late_outcome_of_a_given_back_job_is_refused(store):
    """Its thread goes on after the grace time; what it reports is not recorded."""
    JobFactory()
    bench = Bench()
    bench.round()
    [job] = bench.start()
    bench.dispatcher._drain()
    bench.finish(job)
    bench.dispatcher._settler.settle()

    assert Job.objects.get().state == JobState.READY
    assert not FinishedJob.objects.exists()


def test_five_deploys_do_not_bury_a_job(store):
    """Then it is let to its end."""
    result = samples.add.using(max_attempts=2).enqueue(1, 2)
    for _ in range(5):
        bench = Bench()
        bench.round()
        bench.start()
        bench.dispatcher._drain()
    last = Bench()
    last.work()

    result.refresh()
    assert result.status == "SUCCESSFUL"
    assert len(result.errors) == 5


def test_run_ends_by_itself_when_the_work_is_done(store):
    """And drains."""
    bench = Bench(burst=True)

    bench.dispatcher.run()

    assert bench.stop.requested
    assert not bench.stop.now
