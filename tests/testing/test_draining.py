"""``drain`` runs jobs by the worker's own code, inside the test's transaction as well as without one."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from django.utils import timezone, translation

from django_workqueue.exceptions import LeaseLostError
from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job
from django_workqueue.testing import JobFailedError, WorkQueueTestMixin, draining
from tests.claims import claim_one

from . import sample_tasks as tasks

pytestmark = pytest.mark.django_db

REMEMBERING = {
    "default": {"BACKEND": "django_workqueue.backend.WorkQueueBackend", "QUEUES": []},
    "remembering": {"BACKEND": "django_workqueue.testing.DummyBackend", "QUEUES": []},
}


def endings(attempts):
    """Return how the attempts ended."""
    return [attempt.ending for attempt in attempts]


class TestInTestCase(WorkQueueTestMixin, TestCase):
    """django_dramatiq#52: nothing is ever committed here, and jobs run all the same."""

    def test_enqueued_job_is_seen_and_runs(self):
        """Enqueue stores a row that the test sees; drain runs it."""
        result = tasks.note.enqueue("hello")
        self.assertEnqueued(tasks.note, args=["hello"])

        [attempt] = self.drain()

        assert (str(attempt.job_id), attempt.ending, attempt.result) == (result.id, "succeeded", "hello")
        self.assertNotEnqueued()
        assert tasks.note.get_result(result.id).return_value == "hello"


class TestInTransactionTestCase(WorkQueueTestMixin, TransactionTestCase):
    """The same helpers where tests commit."""

    def test_enqueued_job_is_seen_and_runs(self):
        """The body runs in autocommit, as in a worker."""
        tasks.note.enqueue("hello")
        self.assertEnqueued(tasks.note, args=["hello"])

        assert endings(self.drain()) == ["succeeded"]
        assert not connection.in_atomic_block

    def test_database_error_costs_what_it_costs_in_a_worker(self):
        """Without a transaction around it, each statement of the body stands for itself."""
        tasks.break_the_transaction.enqueue("twice")

        assert endings(self.drain(raise_errors=False)) == ["retry"]
        assert Group.objects.filter(name="twice").count() == 1


# -- what runs ---------------------------------------------------------------------------------------------------


def test_nothing_to_do_is_no_error(workqueue):
    """A test may drain as often as it likes."""
    assert workqueue.drain() == []


def test_jobs_run_in_the_order_of_a_worker(workqueue, done):
    """By turn of the tenants, and by priority for each."""
    for value in ("a1", "a2"):
        tasks.note.using(tenant="a").enqueue(value)
    tasks.note.using(tenant="b").enqueue("b1")
    tasks.note.using(tenant="a", priority=5).enqueue("a0")

    workqueue.drain()

    assert done == ["a0", "b1", "a1", "a2"]


def test_jobs_of_jobs_run_too(workqueue, done):
    """Until nothing is ready any more."""
    tasks.note_and_go_on.enqueue(3)

    assert len(workqueue.drain()) == 4
    assert done == [3, 2, 1, 0]


def test_max_jobs_leaves_the_rest(workqueue, done):
    """A test may look at the world between two jobs."""
    for value in range(3):
        tasks.note.enqueue(value)

    workqueue.drain(max_jobs=2)
    assert done == [0, 1]
    workqueue.assert_enqueued(tasks.note, args=[2], times=1)


@pytest.mark.parametrize(
    ("queues", "expected"), [("mail", ["m"]), (["default"], ["d"]), ("d*", ["d"]), (None, ["d", "m"])]
)
def test_queues_may_be_chosen(workqueue, done, queues, expected):
    """By name or pattern, as for a worker."""
    tasks.note.enqueue("d")
    tasks.note_in_mail.enqueue("m")

    workqueue.drain(queues)

    assert sorted(done) == expected


def test_paused_queue_is_left_alone(workqueue, done):
    """A pause holds for tests of the pause as well."""
    tasks.note.enqueue("d")
    operate.pause("default", by="olga")

    assert workqueue.drain() == []


def test_endless_work_is_named(workqueue, monkeypatch):
    """A job that enqueues itself must not hang the suite."""
    monkeypatch.setattr(draining, "MOST_ATTEMPTS", 5)
    tasks.for_ever.enqueue()

    with pytest.raises(RuntimeError, match=r"made 5 attempts, the last at .*for_ever\. Does it enqueue itself"):
        workqueue.drain()

    assert len(workqueue.drain(max_jobs=10)) == 10


def test_coroutine_uses_the_tests_connection(workqueue, done):
    """An ``async def`` task sees what the test wrote, and the test sees what it wrote."""
    tasks.note_later.enqueue("soon")

    assert endings(workqueue.drain()) == ["succeeded"]
    assert done == ["soon"]
    assert Group.objects.filter(name="soon").exists()


def test_drain_may_be_awaited(workqueue, done):
    """From an asynchronous test, through ``sync_to_async``."""
    tasks.note_later.enqueue("soon")

    async_to_sync(sync_to_async(workqueue.drain))()

    assert done == ["soon"]


def test_drained_work_is_counted(workqueue):
    """Pages that show statistics show those of drained jobs, over several drains."""
    for _ in range(2):
        tasks.note.enqueue(1)
        workqueue.drain()
    tasks.reject.enqueue()
    workqueue.drain(raise_errors=False)

    [stats] = operate.stats()
    assert (stats.done, stats.failed, stats.died) == (2, 1, 1)


def test_lapsed_lease_is_reaped_first(workqueue, store, done):
    """A worker that died before leaves work that comes back."""
    tasks.note.enqueue("again")
    claim_one(store)
    store.shift(31)

    [attempt] = workqueue.drain()

    assert (attempt.number, done) == (2, ["again"])


# -- failures ----------------------------------------------------------------------------------------------------


def test_failure_is_raised_with_its_cause(workqueue):
    """A test that does not expect it is told which job failed, of what, and what becomes of it."""
    result = tasks.fail.enqueue("no paper")

    with pytest.raises(
        JobFailedError, match=r"failed attempt 1 of 3 and is due again in .* s\. .*: no paper"
    ) as raised:
        workqueue.drain()

    error = raised.value
    assert isinstance(error.__cause__, tasks.BrokenError)
    assert (str(error.job_id), error.attempt, error.message) == (result.id, 1, "no paper")
    assert error.error_class == "tests.testing.sample_tasks.BrokenError"
    assert "raise BrokenError(message)" in error.traceback


def test_failure_is_settled_before_it_is_raised(workqueue):
    """The rows are those that a worker leaves behind."""
    tasks.fail.enqueue("no paper")

    with pytest.raises(JobFailedError):
        workqueue.drain()

    assert Failure.objects.get().message == "no paper"
    assert Job.objects.scheduled().get().attempts == 1


def test_failures_may_be_looked_at_instead(workqueue, done):
    """``raise_errors=False`` goes on with the other jobs."""
    tasks.fail.enqueue("no paper")
    tasks.reject.enqueue()
    tasks.note.enqueue("hello")

    failed, rejected, succeeded = workqueue.drain(raise_errors=False)

    assert endings([failed, rejected, succeeded]) == ["retry", "dead", "succeeded"]
    assert isinstance(failed.error.__cause__, tasks.BrokenError)
    assert "is a dead letter (rejected)" in str(rejected.error)
    assert DeadLetter.objects.get().task == rejected.task


def test_failure_without_a_body_is_named(workqueue):
    """A task that cannot be found raises nothing of its own."""
    tasks.note.enqueue(1)
    Job.objects.update(task="shop.tasks.gone")

    with pytest.raises(JobFailedError, match=r"No task 'shop\.tasks\.gone' can be found") as raised:
        workqueue.drain()

    assert raised.value.__cause__ is None


def test_interrupt_of_the_test_run_passes(workqueue):
    """Ctrl-C, and what ``pytest.fail`` raises, are for the test run. The job is settled first."""
    tasks.interrupt.enqueue()

    with pytest.raises(KeyboardInterrupt):
        workqueue.drain(raise_errors=False)

    assert Failure.objects.count() == 1


def test_exit_of_a_body_is_a_failure(workqueue):
    """As in a worker, which no job may end."""
    tasks.leave.enqueue()

    assert endings(workqueue.drain(raise_errors=False)) == ["retry"]


def test_refused_settlement_is_raised(workqueue):
    """A body that outlives its lease learns in the test what it would learn in production."""
    tasks.overstay.enqueue()

    with pytest.raises(LeaseLostError):
        workqueue.drain()

    assert FinishedJob.objects.count() == 0


def test_refused_settlement_is_told(workqueue):
    """Without raising, the attempt says so; the reaper has put the job back, and it is tried again."""
    tasks.overstay.enqueue()

    attempts = workqueue.drain(max_jobs=2, raise_errors=False)

    assert endings(attempts) == ["refused", "refused"]
    assert isinstance(attempts[0].error, LeaseLostError)


# -- time --------------------------------------------------------------------------------------------------------


def test_no_time_passes_by_itself(workqueue, done):
    """A deferred job waits, and so does one that backs off."""
    tasks.note.using(run_after=timedelta(hours=1)).enqueue("later")
    tasks.fail_twice.enqueue()

    assert endings(workqueue.drain(raise_errors=False)) == ["retry"]
    workqueue.assert_enqueued(tasks.note, times=1)


@pytest.mark.parametrize("until", [timedelta(hours=1), 3600, lambda: timezone.now() + timedelta(hours=1)])
def test_time_passes_until_then(workqueue, done, until):
    """What comes due on the way runs, in the order of its times, and no more."""
    tasks.note.using(run_after=timedelta(minutes=50)).enqueue("late")
    tasks.note.using(run_after=timedelta(minutes=10)).enqueue("soon")
    tasks.note.using(run_after=timedelta(minutes=70)).enqueue("too late")

    workqueue.drain(until=until() if callable(until) else until)

    assert done == ["soon", "late"]
    [left] = workqueue.enqueued()
    assert timedelta(minutes=9) < left.ready_at - timezone.now() <= timedelta(minutes=10)


def test_retries_run_until_then(workqueue, done):
    """A job is followed to its end through all its attempts."""
    tasks.fail_twice.enqueue()

    attempts = workqueue.drain(until=3600, raise_errors=False)

    assert endings(attempts) == ["retry", "retry", "succeeded"]
    assert [attempt.number for attempt in attempts] == done == [1, 2, 3]
    assert attempts[-1].result == "third time lucky"


def test_lease_of_a_lost_worker_ends_until_then(workqueue, store, done):
    """Time passes for leases as well, also where nothing is scheduled."""
    tasks.note.enqueue("again")
    claim_one(store)

    workqueue.drain(until=31)

    assert done == ["again"]


@pytest.mark.parametrize("until", [-1, timedelta(seconds=-1)])
def test_time_does_not_go_back(workqueue, until):
    """A negative delay is a mistake, and a moment that is over lets no time pass."""
    with pytest.raises(ValueError, match="Time only passes"):
        workqueue.drain(until=until)
    assert workqueue.drain(until=timezone.now() - timedelta(hours=1)) == []


# -- the test's transaction ----------------------------------------------------------------------------------------


def test_database_error_leaves_the_tests_transaction_usable(workqueue, done):
    """The body's part of it is undone, callbacks included; the test goes on."""
    Group.objects.create(name="of the test")
    tasks.break_the_transaction.enqueue("twice")
    tasks.note.enqueue("next")

    assert endings(workqueue.drain(raise_errors=False)) == ["retry", "succeeded"]

    assert Group.objects.filter(name="of the test").exists()
    assert not Group.objects.filter(name="twice").exists()
    assert done == ["next"]


def test_other_error_keeps_what_the_body_wrote(workqueue):
    """As in a worker, where each statement outside ``atomic`` is committed by itself."""
    tasks.fail.enqueue("no paper")

    workqueue.drain(raise_errors=False)

    assert Group.objects.filter(name="before no paper").exists()


def test_error_inside_a_block_is_the_bodys_own_affair(workqueue, done):
    """A body that catches it goes on, and what it did besides stays."""
    tasks.survive_an_error.enqueue("once")

    assert endings(workqueue.drain()) == ["succeeded"]
    assert Group.objects.filter(name="once").count() == 1
    assert done == ["survived"]


def test_callbacks_run_as_after_a_commit(workqueue, done):
    """pytest-django#752: also those which callbacks register; and a durable block may be entered."""
    tasks.commit.enqueue("it")

    assert endings(workqueue.drain()) == ["succeeded"]
    assert done == ["it", "after it"]


def test_callbacks_of_the_test_are_left_alone(workqueue, done, django_capture_on_commit_callbacks):
    """What waits for the test's own commit goes on waiting for it."""
    tasks.commit.enqueue("it")
    with django_capture_on_commit_callbacks() as callbacks:
        transaction.on_commit(lambda: done.append("test"))
        workqueue.drain()

    assert done == ["it", "after it"]
    assert len(callbacks) == 1


def test_callback_that_fails_fails_its_job(workqueue):
    """In a worker it is raised where the body's transaction ends."""
    tasks.commit_badly.enqueue(robust=False)

    with pytest.raises(JobFailedError, match="after the commit"):
        workqueue.drain()


def test_robust_callback_that_fails_is_logged(workqueue, caplog):
    """As Django does."""
    tasks.commit_badly.enqueue(robust=True)

    assert endings(workqueue.drain()) == ["succeeded"]
    [record] = [record for record in caplog.records if record.name == "django_workqueue.testing"]
    assert (record.levelno, record.exc_info[0]) == (logging.ERROR, tasks.BrokenError)


# -- surroundings --------------------------------------------------------------------------------------------------


def test_body_sees_nothing_of_the_tests_context(workqueue):
    """Language, time zone and context variables of a request are not there in a worker, and so not here."""
    tasks.look_around.enqueue()
    token = tasks.whoever.set("olga")

    with translation.override("de"), timezone.override("Asia/Kathmandu"):
        [attempt] = workqueue.drain()
    tasks.whoever.reset(token)

    assert attempt.result == ["en-us", "UTC", "nobody"]


def test_jobs_for_a_remembering_backend_are_the_tests_to_see(workqueue, settings):
    """A body runs in a context of its own, which would have a backend of its own."""
    settings.TASKS = REMEMBERING
    tasks.hand_over.enqueue("it")

    workqueue.drain()

    workqueue.assert_enqueued(tasks.note, args=["it"], times=1)


def test_context_tells_what_a_worker_tells(workqueue):
    """Bodies that ask for their context need no stand-in."""
    tasks.describe.enqueue()

    [attempt] = workqueue.drain()

    assert attempt.result == {
        "job_id": True,
        "attempt": 1,
        "tenant": "acme",
        "metadata": {"team": "shop"},
        "status": "RUNNING",
        "worker_ids": 1,
    }


# -- steps and atomic tasks --------------------------------------------------------------------------------------------


def test_step_is_done_once_in_a_drain(workqueue, done):
    """Inside the test's own transaction, which is not the body's."""
    tasks.remember_once.enqueue("a")
    attempts = workqueue.drain(raise_errors=False, until=3600)

    assert endings(attempts) == ["retry", "succeeded"]
    assert (done, attempts[1].result) == (["a"], "a")


def test_atomic_task_is_completed_by_its_own_transaction(workqueue, done):
    """What it enqueued runs after it, and callbacks are called as after a commit."""
    tasks.add_group_atomically.enqueue("a")
    attempts = workqueue.drain()

    assert [(attempt.ending, attempt.result) for attempt in attempts] == [("succeeded", "a")] * 2
    assert done == ["committed", "a"]
    assert FinishedJob.objects.count() == 2
    assert Group.objects.get().name == "a"


def test_atomic_task_that_fails_leaves_nothing(workqueue, done):
    """The test's own transaction goes on."""
    tasks.add_group_atomically.enqueue("a", error="no paper")
    attempts = workqueue.drain(raise_errors=False)

    assert endings(attempts) == ["retry"]
    assert not Group.objects.exists()
    assert done == []
    assert Job.objects.count() == 1
