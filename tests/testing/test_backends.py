"""The backends for tests take what the queue takes, and answer what it answers."""

from __future__ import annotations

import uuid
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.core.checks import run_checks
from django.db import transaction
from django.test import SimpleTestCase, TestCase, TransactionTestCase, override_settings
from django.utils import timezone, translation

from django_workqueue import Call
from django_workqueue.domain.contract import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from django_workqueue.exceptions import ArgumentsDoNotFitError, InvalidJobError, PayloadError
from django_workqueue.testing import DummyBackend, ImmediateBackend, WorkQueueTestMixin, drain

from . import sample_tasks as tasks

HERE = "tests.testing.sample_tasks"
IMMEDIATE = {"default": {"BACKEND": "django_workqueue.testing.ImmediateBackend", "QUEUES": []}}
DUMMY = {"default": {"BACKEND": "django_workqueue.testing.DummyBackend", "QUEUES": []}}


@pytest.fixture
def immediate(settings):
    """Run jobs at once."""
    settings.TASKS = IMMEDIATE


@pytest.fixture
def dummy(settings):
    """Only remember jobs; answer the backend."""
    settings.TASKS = DUMMY
    return task_backends["default"]


@pytest.fixture
def heard():
    """Collect the names of the signals that are sent, with their senders and the states that they tell."""
    calls = []
    signals = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    receivers = {
        name: lambda sender, task_result, name=name, **_kwargs: calls.append((name, sender, task_result.status))
        for name in signals
    }
    for name, receiver in receivers.items():
        signals[name].connect(receiver)
    yield calls
    for name, receiver in receivers.items():
        signals[name].disconnect(receiver)


def ran(task, *args):
    """Return what came of one job, in words that are the same in every mode."""
    try:
        result = task.enqueue(*args)
    except PayloadError as error:
        return "refused", str(error)
    if result.status == TaskResultStatus.READY:
        drain(raise_errors=False)
        result = task.get_backend().get_result(result.id)
    if result.status == TaskResultStatus.FAILED:
        return "failed", result.errors[-1].exception_class_path
    return "succeeded", result.return_value


# -- the same in both modes ----------------------------------------------------------------------------------------


@pytest.mark.django_db
class TestSameOutcome:
    """rq#1050 and its like: an eager mode that passes live objects hides what fails in production."""

    def both(self, settings, task, *args):
        """Return the outcome in the database and at once, which are to be the same."""
        stored = ran(task, *args)
        settings.TASKS = IMMEDIATE
        return stored, ran(task, *args)

    @pytest.mark.parametrize(
        "value",
        [
            (1, 2),
            [1, (2,)],
            {1: "one"},
            {"a": {None: 1}},
            date(2020, 2, 29),
            datetime(2020, 2, 29),  # noqa: DTZ001 - any datetime is refused
            Decimal("1.5"),
            uuid.UUID(int=1),
            {1, 2},
            b"bytes",
            float("nan"),
            float("inf"),
            "NUL \x00",
            "half \ud800",
            object,
            "x" * 300_000,
        ],
        ids=lambda value: repr(value)[:30],
    )
    def test_argument_that_json_changes_is_refused(self, settings, done, value):
        """By the same words, before anything is run."""
        stored, at_once = self.both(settings, tasks.takes, value)

        assert stored == at_once
        assert stored[0] == "refused"
        assert done == []

    @pytest.mark.parametrize("value", [None, True, 2, 2.0, 1e22, "ü", [1, [2]], {"a": {"b": 1}}, 10**30, ""], ids=repr)
    def test_argument_that_json_keeps_arrives(self, settings, done, value):
        """Equal, and of the same type."""
        stored, at_once = self.both(settings, tasks.takes, value)

        assert stored == at_once == ("succeeded", repr(value))
        assert done == [value, value]

    @pytest.mark.parametrize("kind", ["tuple", "int keys", "date", "nan", "plain"])
    def test_result_goes_the_same_way(self, settings, kind):
        """A tuple comes back as a list, and what JSON does not have fails the job."""
        stored, at_once = self.both(settings, tasks.returns, kind)

        assert stored == at_once
        assert stored == {
            "tuple": ("succeeded", [1, [2, 3]]),
            "plain": ("succeeded", {"a": [1, 2.5, None, "ü"]}),
        }.get(kind, ("failed", "django_workqueue.exceptions.PayloadError"))

    @pytest.mark.parametrize("task", [tasks.reject, tasks.leave])
    def test_failure_has_the_same_name(self, settings, task):
        """Whatever a body raises, if no attempt is left."""
        stored, at_once = self.both(settings, task.using(max_attempts=1))

        assert stored == at_once
        assert stored[0] == "failed"

    def test_context_is_the_same(self, settings):
        """By ``takes_context`` and all that it tells."""
        stored, at_once = self.both(settings, tasks.describe)

        assert stored == at_once
        assert stored[0] == "succeeded"

    def test_surroundings_are_the_same(self, settings):
        """The caller's language, zone and variables are not there."""
        with translation.override("de"), timezone.override("Asia/Kathmandu"):
            stored, at_once = self.both(settings, tasks.look_around)

        assert stored == at_once == ("succeeded", ["en-us", "UTC", "nobody"])

    def test_alias_leads_to_the_same_task(self, settings):
        """A job is looked up by its stored path, and so is one that runs at once."""
        settings.WORKQUEUE = {"ALIASES": {f"{HERE}.note": f"{HERE}.takes"}}

        assert self.both(settings, tasks.note, 1) == (("succeeded", "1"),) * 2


# -- at once -------------------------------------------------------------------------------------------------------


class TestImmediateInSimpleTestCase(SimpleTestCase):
    """Where no database may be used, jobs that use none run."""

    @override_settings(TASKS=IMMEDIATE)
    def test_job_runs_without_a_database(self):
        """Neither validation nor the signals look into a table."""
        assert tasks.describe.enqueue().status == TaskResultStatus.SUCCESSFUL


@override_settings(TASKS=IMMEDIATE)
class TestImmediateInTestCase(TestCase):
    """Inside the test's transaction."""

    def test_job_runs(self):
        """And sees what the test wrote."""
        assert tasks.note_later.enqueue("soon").status == TaskResultStatus.SUCCESSFUL
        assert Group.objects.filter(name="soon").exists()


@override_settings(TASKS=IMMEDIATE)
class TestImmediateInTransactionTestCase(TransactionTestCase):
    """Without one."""

    def test_job_runs(self):
        """In autocommit."""
        assert tasks.commit.enqueue("it").status == TaskResultStatus.SUCCESSFUL
        assert Group.objects.filter(name="it").exists()


def test_immediate_job_gets_a_copy(immediate, done):
    """What the body does to its arguments does not reach the caller."""
    value = [1]

    tasks.takes.enqueue(value)
    done[0].append(2)

    assert value == [1]


def test_immediate_options_are_accepted(immediate, done):
    """All those of the queue. A deferred job runs at once: nothing waits in this mode."""
    varied = tasks.note.using(
        run_after=timedelta(hours=1),
        tenant="acme",
        priority=5,
        dedupe_key="order-1",
        max_attempts=3,
        job_id=uuid.UUID(int=7),
        metadata={"team": "shop"},
    )

    result = varied.enqueue("now")

    assert (result.id, result.duplicate, done) == (str(uuid.UUID(int=7)), False, ["now"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"run_after": timedelta(seconds=-1)}, InvalidTask),
        ({"priority": 101}, InvalidTask),
        ({"tenant": "x" * 101}, InvalidJobError),
        ({"metadata": {"_ours": 1}}, InvalidJobError),
        ({"max_attempts": 0}, InvalidJobError),
    ],
)
@pytest.mark.parametrize("mode", [IMMEDIATE, DUMMY])
def test_options_are_refused_as_by_the_queue(settings, done, mode, options, error):
    """A mistake that only production would find is what tests are for."""
    settings.TASKS = mode

    with pytest.raises(error):
        tasks.note.using(**options).enqueue("never")
    assert done == []


@pytest.mark.parametrize("mode", [IMMEDIATE, DUMMY])
def test_queues_are_permitted_as_by_the_queue(settings, mode):
    """``QUEUES`` means the same on every backend."""
    settings.TASKS = {"default": {**mode["default"], "QUEUES": ["default", "mail"]}}

    with pytest.raises(InvalidTask):
        tasks.note.using(queue_name="other").enqueue(1)
    with pytest.raises(ArgumentsDoNotFitError):
        tasks.note.enqueue(1, 2, 3)


def test_immediate_failure_is_a_result(immediate):
    """``enqueue`` does not raise what the body raises: in production it would not either."""
    result = tasks.reject.enqueue()

    [error] = result.errors
    assert (result.status, error.exception_class_path) == (
        TaskResultStatus.FAILED,
        "django_workqueue.exceptions.Reject",
    )
    assert "wrong address" in error.traceback
    assert result.finished_at is not None


def test_immediate_interrupt_passes(immediate):
    """Ctrl-C stops the test run and not one job."""
    with pytest.raises(KeyboardInterrupt):
        tasks.interrupt.enqueue()


@pytest.mark.django_db
def test_immediate_database_error_leaves_the_callers_transaction_usable(immediate, done):
    """Its callbacks go with what it wrote."""
    with transaction.atomic():
        result = tasks.break_the_transaction.enqueue("twice")
        Group.objects.create(name="after")

    assert result.status == TaskResultStatus.FAILED
    assert not Group.objects.filter(name="twice").exists()
    assert Group.objects.filter(name="after").exists()
    assert done == []


@pytest.mark.django_db
def test_immediate_callbacks_wait_for_the_callers_commit(immediate, done, django_capture_on_commit_callbacks):
    """The body is part of the caller's transaction, which may yet be rolled back."""
    with django_capture_on_commit_callbacks() as callbacks:
        tasks.commit.enqueue("it")

    assert done == ["it"]
    assert len(callbacks) == 1


def test_immediate_signals_are_those_of_the_queue(immediate, heard):
    """In their order, from the backend's class."""
    tasks.note.enqueue(1)

    assert heard == [
        ("enqueued", ImmediateBackend, heard[0][2]),
        ("started", ImmediateBackend, TaskResultStatus.RUNNING),
        ("finished", ImmediateBackend, TaskResultStatus.SUCCESSFUL),
    ]


def test_immediate_jobs_of_one_call_are_checked_first(immediate, done):
    """One that is refused keeps the others from running, as in the queue."""
    with pytest.raises(PayloadError):
        tasks.takes.enqueue_many([(1,), ((2,),)])
    assert done == []

    results = tasks.takes.enqueue_many([(1,), {"value": 2}, Call(args=(3,))])
    assert [result.return_value for result in results] == ["1", "2", "3"]


def test_immediate_job_may_be_enqueued_from_a_coroutine(immediate, done):
    """``aenqueue`` runs it in the thread for synchronous code."""
    result = async_to_sync(tasks.note.aenqueue)("awaited")

    assert (result.status, done) == (TaskResultStatus.SUCCESSFUL, ["awaited"])


# -- remembered ----------------------------------------------------------------------------------------------------


class TestDummyInSimpleTestCase(WorkQueueTestMixin, SimpleTestCase):
    """Assertions need no database where nothing is stored."""

    @override_settings(TASKS=DUMMY)
    def test_remembered_jobs_are_found(self):
        """By the same criteria as rows."""
        tasks.note.using(tenant="acme", run_after=timedelta(hours=1)).enqueue("later")

        self.assertEnqueued(tasks.note, args=["later"], tenant="acme", run_after=timedelta(hours=1), times=1)
        self.assertNotEnqueued(tasks.fail)


def test_dummy_runs_nothing(dummy, done):
    """It answers with a job that is ready."""
    result = tasks.note.enqueue("never")

    assert (result.status, result.duplicate, done) == (TaskResultStatus.READY, False, [])
    assert [each.id for each in dummy.results] == [result.id]
    assert tasks.note.get_result(result.id).args == ["never"]


def test_dummy_answers_a_live_key_with_its_holder(dummy):
    """As the queue does, for each tenant and queue by itself."""
    varied = tasks.note.using(dedupe_key="order-1")
    first = varied.enqueue(1)

    again = varied.enqueue(2)

    assert (again.id, again.duplicate, again.args) == (first.id, True, [1])
    assert not varied.using(tenant="acme").enqueue(3).duplicate
    assert not varied.using(queue_name="mail").enqueue(4).duplicate
    assert len(dummy.jobs) == 3


def test_dummy_answers_a_live_id_with_its_job(dummy):
    """Enqueueing twice under one id makes one job."""
    varied = tasks.note.using(job_id=uuid.UUID(int=7))

    assert [varied.enqueue(value).duplicate for value in (1, 2)] == [False, True]


def test_dummy_forgets_when_told_to(dummy, workqueue):
    """Between tests, by hand or by the fixture."""
    tasks.note.enqueue(1)

    dummy.clear()

    workqueue.assert_not_enqueued()
    with pytest.raises(TaskResultDoesNotExist):
        dummy.get_result("gone")


def test_dummy_is_empty_when_a_test_begins(dummy, request):
    """The fixture forgets what earlier tests have left."""
    tasks.note.enqueue(1)

    request.getfixturevalue("workqueue").assert_not_enqueued()


def test_dummy_keeps_its_own_copy(dummy):
    """What the code under test does to a result does not change what is remembered."""
    result = tasks.takes.enqueue([1])

    result.args[0].append(2)

    assert dummy.results[0].args == [[1]]


def test_dummy_announces_what_it_remembers(dummy, heard):
    """Once for each job, and not for a duplicate."""
    varied = tasks.note.using(dedupe_key="order-1")
    varied.enqueue(1)
    varied.enqueue(2)

    assert heard == [("enqueued", DummyBackend, TaskResultStatus.READY)]


@pytest.mark.django_db
@pytest.mark.parametrize("mode", [IMMEDIATE, DUMMY])
def test_backends_for_tests_are_no_fault_of_the_settings(settings, mode):
    """The checks, which run before each test run, do not ask for the queue's own backend there."""
    settings.TASKS = mode

    assert [message.id for message in run_checks() if message.id.startswith("django_workqueue")] == []


@pytest.mark.django_db
@pytest.mark.parametrize("error", ["", "no paper"])
def test_immediate_atomic_task_commits_all_or_nothing(immediate, error):
    """There is no job to complete, and the body is a transaction all the same."""
    result = tasks.add_group_atomically.enqueue("a", error=error)

    assert (result.status, Group.objects.count()) == (
        (TaskResultStatus.FAILED, 0) if error else (TaskResultStatus.SUCCESSFUL, 1)
    )


@pytest.mark.django_db
def test_immediate_task_has_its_steps(immediate, done):
    """They are on record as those of a queued one."""
    result = tasks.remember_once.enqueue("a")

    assert result.errors[0].exception_class_path.endswith("BrokenError")
    assert done == ["a"]
