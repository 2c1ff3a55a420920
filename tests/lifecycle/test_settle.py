"""Settle: what becomes of an attempt, and who is told."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from django_workqueue.backend import WorkQueueBackend
from django_workqueue.domain.contract import TaskResultStatus, task_finished
from django_workqueue.domain.outcomes import Bury, Retry
from django_workqueue.domain.states import DeathReason, FailureKind
from django_workqueue.lifecycle import settle
from django_workqueue.lifecycle.settle import PUT_OFF_AT_LEAST
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job
from django_workqueue.signals import job_died, lease_lost
from tests import samples
from tests.claims import claim_one, failed, put_back, succeeded

pytestmark = pytest.mark.django_db


@pytest.fixture
def told():
    """Collect the signals that are sent."""
    calls = []

    def receiver(signal, sender, **facts):
        calls.append((signal, sender, facts))

    for signal in (task_finished, job_died, lease_lost):
        signal.connect(receiver)
    yield calls
    for signal in (task_finished, job_died, lease_lost):
        signal.disconnect(receiver)


def decide(store, *, attempts: int = 1, **outcome):
    """Return what is decided about a failure in attempt number ``attempts`` of three."""
    samples.add.using(max_attempts=3).enqueue(1, 2)
    Job.objects.update(attempts=attempts - 1)
    return settle.decide(store, failed(claim_one(store), **outcome))


def retry(seconds: float) -> Retry:
    """Return the decision to try again, unless the job was to be cancelled meanwhile."""
    return Retry(timedelta(seconds=seconds), if_cancelled=Bury(DeathReason.CANCELLED))


def fail(store, job, **outcome):
    """Settle a failed attempt and return the decision."""
    return settle.fail(store, failed(job, **outcome), worker="worker-1", last=True)


# -- decisions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2)])
def test_failure_is_retried_with_backoff(store, attempt, seconds):
    """Doubling from a second."""
    assert decide(store, attempts=attempt) == retry(seconds)


def test_last_attempt_is_the_last(store):
    """The attempts were used up."""
    assert decide(store, attempts=3) == Bury(DeathReason.EXHAUSTED)


def test_asked_delay_replaces_the_backoff(store):
    """And still counts as an attempt."""
    assert decide(store, retry_after=timedelta(seconds=90)) == retry(90)
    assert decide(store, retry_after=timedelta(), attempts=2) == retry(0)
    assert decide(store, retry_after=timedelta(seconds=90), attempts=3) == Bury(DeathReason.EXHAUSTED)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(FailureKind.REJECTED, DeathReason.REJECTED), (FailureKind.UNDECODABLE, DeathReason.UNDECODABLE)],
)
def test_hopeless_failure_goes_straight_to_the_dead_letters(store, kind, reason):
    """A 4xx is not tried again."""
    assert decide(store, kind=kind) == Bury(reason)


@pytest.mark.parametrize("attempt", [1, 3, 7])
def test_interruption_never_counts(store, attempt):
    """Being deployed over does not send a job to the dead letters (riverqueue/river PR#1289)."""
    assert decide(store, kind=FailureKind.INTERRUPTED, attempts=attempt) == Retry(timedelta(), counted=False)


def test_success_is_nothing_to_decide(store):
    """A slip of the caller."""
    samples.add.enqueue(1, 2)

    with pytest.raises(TypeError, match="nothing to decide"):
        settle.decide(store, succeeded(claim_one(store)))


# -- unknown tasks -----------------------------------------------------------------------------------------------------


def wait_and_claim(store, seconds: float):
    """Let time pass and claim the job again."""
    store.shift(seconds)
    store.promote()
    return claim_one(store)


def test_unknown_task_is_put_off_without_using_attempts(store):
    """A rollout may be under way (Betterment/delayed#23)."""
    samples.add.using(max_attempts=1).enqueue(1, 2)
    job = claim_one(store)
    for expected in (1, 2, 4, 8):
        assert fail(store, job, kind=FailureKind.UNKNOWN_TASK) == Retry(timedelta(seconds=expected), counted=False)
        job = wait_and_claim(store, expected + 1)

    assert job.attempts == 1
    assert Failure.objects.count() == 4


def test_unknown_task_dies_when_patience_is_over(store, settings):
    """Counted from the first time, and told with the reason."""
    settings.WORKQUEUE = {"UNKNOWN_TASK_PATIENCE": 100}
    samples.add.enqueue(1, 2)
    fail(store, claim_one(store), kind=FailureKind.UNKNOWN_TASK)

    assert isinstance(fail(store, wait_and_claim(store, 90), kind=FailureKind.UNKNOWN_TASK), Retry)
    assert fail(store, wait_and_claim(store, 60), kind=FailureKind.UNKNOWN_TASK) == Bury(DeathReason.UNKNOWN_TASK)
    assert DeadLetter.objects.get().reason == DeathReason.UNKNOWN_TASK


def test_task_that_comes_back_runs_with_all_its_attempts(store):
    """The rollout ended."""
    samples.add.enqueue(1, 2)
    fail(store, claim_one(store), kind=FailureKind.UNKNOWN_TASK)

    assert wait_and_claim(store, 2).attempts == 1


def test_unknown_task_does_not_spin_without_a_backoff(store, settings):
    """Through the whole fleet, as fast as it can."""
    settings.WORKQUEUE = {"BACKOFF": 0}
    samples.add.enqueue(1, 2)

    assert fail(store, claim_one(store), kind=FailureKind.UNKNOWN_TASK).delay >= PUT_OFF_AT_LEAST


# -- the whole way -----------------------------------------------------------------------------------------------------


def test_job_fails_as_often_as_it_may_and_dies_with_its_history(store):
    """Max attempts 1 and 3, error text and count on the dead letter (seomoz/qless-core#7)."""
    for most in (1, 3):
        samples.fail.using(max_attempts=most, tenant=f"t{most}").enqueue()
        for number in range(1, most + 1):
            store.shift(1000)
            store.promote()
            fail(store, claim_one(store, f"t{most}"), message=f"error {number}")

        letter = DeadLetter.objects.get(tenant=f"t{most}")
        assert letter.last_error == f"OutOfPaperError: error {most}"
        assert [each.message for each in letter.failures] == [f"error {number}" for number in range(1, most + 1)]


def test_refused_report_decides_nothing(store):
    """The lease no longer held."""
    samples.add.enqueue(1, 2)
    job = claim_one(store)
    store.shift(31)

    assert fail(store, job) is None
    assert settle.complete(store, job.lease_id, [succeeded(job)], worker="worker-1", last=True) == [job]
    assert not (FinishedJob.objects.exists() or Failure.objects.exists())  # noqa: PT018 - one fact: nothing was written


def test_released_job_is_not_counted(store):
    """It was claimed and never started."""
    samples.add.enqueue(1, 2)
    job = claim_one(store)

    assert settle.release(store, job.lease_id, [job.id], last=True) == {job.id}
    assert claim_one(store).attempts == 1


# -- who is told -------------------------------------------------------------------------------------------------------


def test_success_is_told_with_its_result(store, told):
    """Sender is the backend's class; the result can be read."""
    result = samples.add.enqueue(1, 2)
    job = claim_one(store)
    settle.complete(store, job.lease_id, [succeeded(job, "3")], worker="web1:4", last=True)

    [(signal, sender, facts)] = told
    assert (signal, sender) == (task_finished, WorkQueueBackend)
    assert (facts["task_result"].id, facts["task_result"].status) == (result.id, TaskResultStatus.SUCCESSFUL)
    assert facts["task_result"].return_value == 3
    assert facts["task_result"].worker_ids == ["web1:4"]


def test_retry_is_no_end(store, told):
    """``task_finished`` comes once for each job, when it is over."""
    samples.add.enqueue(1, 2)
    fail(store, claim_one(store))

    assert told == []


def test_death_is_told_twice(store, told):
    """To those who follow tasks, and to those who are to be alerted."""
    result = samples.add.using(max_attempts=1, tenant="acme").enqueue(1, 2)
    fail(store, claim_one(store, "acme"), message="no paper")

    (finished, _, described), (died, sender, facts) = told
    assert (finished, died, sender) == (task_finished, job_died, None)
    assert described["task_result"].status == TaskResultStatus.FAILED
    assert [error.exception_class for error in described["task_result"].errors] == [samples.OutOfPaperError]
    assert str(facts.pop("job_id")) == result.id
    assert facts == {
        "task": "tests.samples.add",
        "queue": "default",
        "tenant": "acme",
        "reason": DeathReason.EXHAUSTED,
        "last_error": "OutOfPaperError: no paper",
    }


def test_death_of_an_unknown_task_is_told_to_those_who_are_to_be_alerted(store, told, settings):
    """There is no task to describe."""
    settings.WORKQUEUE = {"UNKNOWN_TASK_PATIENCE": 0}
    samples.add.enqueue(1, 2)
    Job.objects.update(task="tests.samples.was_here_once")
    fail(store, claim_one(store), kind=FailureKind.UNKNOWN_TASK)
    fail(store, wait_and_claim(store, 5), kind=FailureKind.UNKNOWN_TASK)

    assert [signal for signal, _, _ in told] == [job_died]


def test_refusal_is_told_and_logged_with_its_reason(store, told, caplog):
    """A worker's report that was not recorded is something to look into."""
    result = samples.add.using(dedupe_key="k").enqueue(1, 2)
    job = claim_one(store)
    store.shift(31)
    store.reap(put_back)
    claim_one(store, worker="worker-2")

    with caplog.at_level(logging.WARNING):
        error = settle.refuse(store, job)

    assert (error.reason, error.holder, str(error.job_id)) == ("taken", "worker-2", result.id)
    [(signal, _, facts)] = told
    assert signal is lease_lost
    assert (facts["lease_id"], facts["reason"], facts["tenant"]) == (job.lease_id, "taken", "")
    [record] = caplog.records
    assert (record.levelname, record.reason, record.job_id, record.key) == ("WARNING", "taken", result.id, "k")


@pytest.mark.parametrize("signal", [task_finished, job_died, lease_lost])
def test_receiver_that_raises_harms_nothing(store, signal):
    """What was written is written."""

    def receiver(**_facts):
        raise RuntimeError("metrics are down")

    signal.connect(receiver)
    try:
        samples.add.using(max_attempts=1).enqueue(1, 2)
        job = claim_one(store)
        fail(store, job)
        settle.refuse(store, job)
    finally:
        signal.disconnect(receiver)

    assert DeadLetter.objects.exists()


def test_result_that_cannot_be_described_harms_nothing(store, told, monkeypatch, caplog):
    """A signal is a courtesy."""
    samples.add.enqueue(1, 2)
    job = claim_one(store)
    monkeypatch.setattr(settle, "of_attempt", lambda *_args, **_kwargs: 1 / 0)

    with caplog.at_level(logging.ERROR):
        assert settle.complete(store, job.lease_id, [succeeded(job)], worker="w", last=True) == []

    assert told == []
    assert FinishedJob.objects.exists()


def test_nobody_listening_costs_no_query(store, django_assert_num_queries):
    """Most projects have no receivers."""
    samples.add.enqueue(1, 2)
    job = claim_one(store)
    store.complete(job.lease_id, [succeeded(job)], worker="w", last=True)

    with django_assert_num_queries(0):
        settle._announce_finish(store, succeeded(job), "w")


# -- the log -----------------------------------------------------------------------------------------------------------


def test_retry_is_logged_quietly_and_death_loudly(store, caplog):
    """With all fields by which one searches, and never with what a customer typed."""
    samples.return_it.using(max_attempts=2, metadata={"pin": "4711"}).enqueue("secret")
    with caplog.at_level(logging.INFO, logger="django_workqueue"):
        fail(store, claim_one(store), message="secret")
        fail(store, wait_and_claim(store, 5), message="secret")

    retry, death = (each for each in caplog.records if each.name == "django_workqueue.settle")
    assert (retry.levelname, retry.attempt, retry.kind, retry.retry_in_seconds) == ("INFO", 1, "error", 1.0)
    assert (death.levelname, death.attempt, death.reason) == ("ERROR", 2, "exhausted")
    assert death.error_class == "tests.samples.OutOfPaperError"
    assert "secret" not in caplog.text
    assert "4711" not in caplog.text
