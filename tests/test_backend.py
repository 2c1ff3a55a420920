"""The ``django.tasks`` backend: what Django documents of tasks and results holds for jobs of this queue."""

from __future__ import annotations

import logging
import pickle
import uuid
from datetime import timedelta

import django
import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.utils import timezone

from django_workqueue.backend import WorkQueueBackend
from django_workqueue.domain.contract import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from django_workqueue.domain.outcomes import ClaimedJob, Failed, Settlement
from django_workqueue.domain.states import FailureKind
from django_workqueue.exceptions import ArgumentsDoNotFitError, InvalidJobError
from django_workqueue.models import FinishedJob, Job
from django_workqueue.tasks import Call

from . import samples
from .claims import EXACT, NO_DELAY, bury, claim_one, complete, fail, succeeded

pytestmark = pytest.mark.django_db


def backend(**params) -> WorkQueueBackend:
    """Return a backend as ``TASKS`` would make it."""
    return WorkQueueBackend("default", params)


def lost(job: ClaimedJob) -> Settlement:
    """Return the settlement of an attempt whose worker went silent."""
    return Settlement(job, Failed(kind=FailureKind.LAPSED, message="Worker lost."), EXACT)


@pytest.fixture
def heard():
    """Collect what receivers of ``task_enqueued`` are told."""
    calls = []

    def receiver(sender, task_result, **_kwargs):
        calls.append((sender, task_result))

    task_enqueued.connect(receiver)
    yield calls
    task_enqueued.disconnect(receiver)


# -- what it claims to be able to do ----------------------------------------------------------------------------------


def test_backend_says_that_it_supports_everything():
    """Every flag of the contract is true; the tests below hold each of them to its word."""
    made = backend()

    assert (made.supports_defer, made.supports_async_task, made.supports_get_result, made.supports_priority) == (
        True,
        True,
        True,
        True,
    )


def test_deferred_task_is_not_handed_out_early(store):
    """``supports_defer`` is the truth: the job waits for its time and comes then."""
    result = samples.add.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(1, 2)

    assert store.lanes("default") == []
    store.shift(3601)
    store.promote()
    assert str(claim_one(store).id) == result.id


def test_urgent_task_is_handed_out_first(store):
    """``supports_priority`` is the truth: higher numbers come first, as in ``django.tasks``."""
    low, high, normal = (samples.add.using(priority=priority).enqueue(1, 2) for priority in (-100, 100, 0))

    assert [str(claim_one(store).id) for _ in range(3)] == [high.id, normal.id, low.id]


def test_coroutine_function_is_accepted():
    """``supports_async_task`` is the truth at the door; the worker's tests run one."""
    assert samples.add_async.enqueue(1, 2).status == TaskResultStatus.READY


def test_task_of_django_tasks_itself_is_stored(store):
    """Whoever imports ``task`` from ``django.tasks`` uses this queue all the same."""
    result = samples.plain.using(priority=5, queue_name="mail").enqueue(6, 7)

    job = Job.objects.get(pk=result.id)
    assert (job.task, job.queue, job.priority, job.decoded_args) == ("tests.samples.plain", "mail", 5, [6, 7])


# -- validation -------------------------------------------------------------------------------------------------------


def test_queue_outside_the_configured_list_is_refused_by_name():
    """A misspelt queue would wait for ever without a sign (Techiebutler/freeframe#240)."""
    with pytest.raises(InvalidTask, match="defualt"):
        backend(QUEUES=["default", "mail"]).validate_task(samples.add.using(queue_name="defualt"))


def test_empty_list_of_queues_permits_any():
    """A project that does not list its queues may name them freely."""
    backend(QUEUES=[]).validate_task(samples.add.using(queue_name="defualt"))


@pytest.mark.parametrize("priority", [-101, 101, 1.5])
def test_priority_out_of_range_is_refused(priority):
    """The range is that of ``django.tasks``."""
    with pytest.raises(InvalidTask):
        samples.add.using(priority=priority)


def test_naive_time_is_refused():
    """Nobody knows which moment a naive time means in a project with time zones."""
    with pytest.raises(InvalidTask, match="aware"):
        samples.add.using(run_after=timezone.now().replace(tzinfo=None))


def test_negative_delay_is_refused():
    """A delay into the past is a slip of the caller."""
    with pytest.raises(InvalidTask, match="zero or more"):
        samples.add.using(run_after=timedelta(seconds=-1))


def test_function_inside_a_function_is_refused():
    """No worker could find it by its path."""

    def inner():
        """Do nothing."""

    with pytest.raises(InvalidTask, match="module level"):
        samples.task(inner)


def test_context_must_be_the_first_parameter():
    """As ``django.tasks`` documents."""
    with pytest.raises(InvalidTask, match="context"):
        samples.task(takes_context=True)(samples.add.func)


@pytest.mark.parametrize(("args", "kwargs"), [((1,), {}), ((1, 2, 3), {}), ((1,), {"rihgt": 2}), ((1, 2), {"left": 1})])
def test_arguments_that_do_not_fit_raise_at_enqueue(args, kwargs, django_assert_num_queries):
    """A wrong call is the caller's to see, not the worker's (readthedocs/readthedocs.org PR#10374)."""
    with django_assert_num_queries(0), pytest.raises(ArgumentsDoNotFitError, match="samples"):
        samples.add.enqueue(*args, **kwargs)


def test_context_is_not_the_callers_to_pass():
    """The context is added by the worker, so it does not count among the arguments at enqueue."""
    samples.describe.enqueue()
    samples.describe_ctx.enqueue("hello")
    samples.plain_with_context.enqueue()

    with pytest.raises(ArgumentsDoNotFitError):
        samples.describe.enqueue("surplus")


# -- the result of an enqueue -----------------------------------------------------------------------------------------


def test_enqueue_answers_a_complete_ready_result():
    """Every attribute that ``django.tasks`` documents is there and of its documented type."""
    result = samples.add.enqueue(1, right=2)

    assert result.status == TaskResultStatus.READY
    assert (result.args, result.kwargs) == ([1], {"right": 2})
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None, None, None)
    assert (result.errors, result.worker_ids, result.attempts) == ([], [], 0)
    assert (result.backend, result.task) == ("default", samples.add)
    assert result.is_finished is False
    assert abs(timezone.now() - result.enqueued_at) < timedelta(minutes=1)


def test_enqueue_answers_the_stored_stamp_for_every_job_of_a_batch():
    """``enqueued_at`` is a time, also where the database itself has filled the column in."""
    first, second = samples.add.enqueue_many([(1, 2), (3, 4)])

    assert abs(timezone.now() - first.enqueued_at) < timedelta(minutes=1)
    assert second.enqueued_at == samples.add.get_result(second.id).enqueued_at


def test_id_is_text_that_names_the_job():
    """The id can be kept in a session or an address, and finds the row in the admin."""
    result = samples.add.enqueue(1, 2)

    assert isinstance(result.id, str)
    assert Job.objects.get(pk=result.id).task == "tests.samples.add"


def test_aenqueue_stores_a_job():
    """Asynchronous views enqueue as well."""
    result = async_to_sync(samples.add.aenqueue)(1, 2)

    assert Job.objects.filter(pk=result.id).exists()


def test_aenqueue_many_stores_all():
    """The batch has an asynchronous twin."""
    results = async_to_sync(samples.add.aenqueue_many)([(1, 2), (3, 4)])

    assert Job.objects.count() == len(results) == 2


def test_aget_result_finds_the_job():
    """Results can be read from asynchronous code."""
    result = samples.add.enqueue(1, 2)

    assert async_to_sync(samples.add.aget_result)(result.id).id == result.id


# -- results ----------------------------------------------------------------------------------------------------------


def test_claimed_job_is_running(store):
    """A job under a lease is RUNNING, with the worker's id and the time of the claim."""
    result = samples.add.enqueue(1, 2)
    claim_one(store, worker="web1:4")

    result.refresh()

    assert result.status == TaskResultStatus.RUNNING
    assert result.worker_ids == ["web1:4"]
    assert result.attempts == 1
    assert result.started_at == result.last_attempted_at is not None
    assert result.finished_at is None


def test_succeeded_job_gives_its_value(store):
    """The return value comes back as JSON gave it."""
    result = samples.add.enqueue(1, 2)
    store.complete((job := claim_one(store)).lease_id, [succeeded(job, '{"sum":3}')], worker="web1:4", last=True)

    result.refresh()

    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == {"sum": 3}
    assert result.worker_ids == ["web1:4"]
    assert result.started_at < result.finished_at
    assert result.is_finished


def test_result_of_none_is_a_result(store):
    """None is a value like any other; only its absence raises."""
    result = samples.add.enqueue(1, 2)
    complete(store, claim_one(store))

    result.refresh()

    assert result.return_value is None


def test_failed_attempt_leaves_the_job_ready_with_its_error(store):
    """Between two attempts the status is READY, as ``django.tasks`` has it, and the errors so far are listed."""
    result = samples.fail.enqueue()
    fail(store, claim_one(store), message="no paper", traceback="Traceback ...")

    result.refresh()

    assert result.status == TaskResultStatus.READY
    [error] = result.errors
    assert error.exception_class is samples.OutOfPaperError
    assert error.traceback == "Traceback ..."
    assert (result.worker_ids, result.attempts) == (["worker-1"], 1)
    with pytest.raises(ValueError, match="not finished"):
        result.return_value  # noqa: B018 - reading is what raises


def test_dead_job_has_failed_with_every_error(store):
    """A dead letter is FAILED; its history tells each attempt."""
    result = samples.fail.enqueue()
    fail(store, claim_one(store), message="first")
    bury(store, claim_one(store, worker="worker-2"), message="second")

    result.refresh()

    assert result.status == TaskResultStatus.FAILED
    assert len(result.errors) == result.attempts == 2
    assert result.finished_at is not None
    with pytest.raises(ValueError, match="failed"):
        result.return_value  # noqa: B018 - reading is what raises


def test_attempt_that_no_exception_ended_has_an_exception_class_all_the_same(store):
    """``TaskError.exception_class`` imports its path, also for a worker that was lost."""
    result = samples.add.enqueue(1, 2)
    store.fail(lost(claim_one(store)), NO_DELAY, worker="worker-1", last=True)

    result.refresh()

    [error] = result.errors
    assert issubclass(error.exception_class, Exception)
    assert error.traceback == "Worker lost."


@pytest.mark.parametrize("result_id", [pytest.param(str(uuid.uuid4()), id="unknown"), "x", "", "0", "None"])
def test_unknown_or_malformed_id_does_not_exist(result_id):
    """Whatever is not the id of a job is answered with the one documented error (django/django PR#18627)."""
    with pytest.raises(TaskResultDoesNotExist):
        samples.add.get_result(result_id)
    with pytest.raises(TaskResultDoesNotExist):
        backend().get_result(result_id)


@pytest.mark.parametrize("result_id", [None, 7])
def test_id_of_another_type_does_not_exist(result_id):
    """A caller's None is no job either, and no TypeError."""
    with pytest.raises(TaskResultDoesNotExist):
        samples.add.get_result(result_id)


def test_result_of_another_task_is_refused():
    """A task hands out its own results only (django/django PR#18627)."""
    result = samples.add.enqueue(1, 2)

    with pytest.raises(TaskResultMismatch):
        samples.fail.get_result(result.id)
    assert backend().get_result(result.id).task == samples.add


def test_pruned_result_does_not_exist(store):
    """After its retention a result is gone, and asking for it says so."""
    result = samples.add.enqueue(1, 2)
    complete(store, claim_one(store))
    FinishedJob.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    store.prune(batch=10, dead_retention=None, statistics_retention=timedelta(days=1))

    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


def test_result_of_a_task_that_is_gone_does_not_exist():
    """Its function cannot be named any more, so there is no result to be had, and no import error."""
    result = samples.add.enqueue(1, 2)
    Job.objects.update(task="tests.samples.was_here_once")

    with pytest.raises(TaskResultDoesNotExist, match="was_here_once"):
        backend().get_result(result.id)


def test_undecodable_arguments_do_not_hide_the_result():
    """A row that was damaged by hand can still be looked at."""
    result = samples.add.enqueue(1, 2)
    Job.objects.update(args="{broken")

    assert backend().get_result(result.id).args == []


@pytest.mark.skipif(django.VERSION < (6, 1), reason="The backport's results cannot be pickled.")
def test_result_survives_pickling():
    """Django 6.1 pickles results, into a cache for instance."""
    result = samples.send.using(dedupe_key="k").enqueue("a@example.com")

    again = pickle.loads(pickle.dumps(result))

    assert again == result
    assert again.task.tenant == "acme"


# -- signals ----------------------------------------------------------------------------------------------------------


def test_enqueued_signal_comes_from_the_backends_class(heard):
    """Receivers select by sender, which Django documents to be the backend's class."""
    result = samples.add.enqueue(1, 2)

    assert heard == [(WorkQueueBackend, result)]


def test_enqueued_signal_comes_once_for_each_job_of_a_batch(heard):
    """A batch is many jobs."""
    results = samples.add.enqueue_many([(1, 2), (3, 4)])

    assert [result.id for _, result in heard] == [result.id for result in results]


def test_suppressed_duplicate_sends_no_signal(heard):
    """Nothing was enqueued the second time."""
    first = samples.bill.enqueue(7)
    samples.bill.enqueue(7)

    assert [result.id for _, result in heard] == [first.id]


def test_receiver_that_raises_does_not_fail_the_enqueue(caplog):
    """The job is stored by then; somebody else's receiver must not tell the caller otherwise."""

    def receiver(**_kwargs):
        raise RuntimeError("metrics are down")

    task_enqueued.connect(receiver)
    try:
        with caplog.at_level(logging.CRITICAL):
            result = samples.add.enqueue(1, 2)
    finally:
        task_enqueued.disconnect(receiver)

    assert Job.objects.filter(pk=result.id).exists()


# -- batches, options and checks --------------------------------------------------------------------------------------


def test_batch_takes_tuples_mappings_and_calls():
    """Each job of a batch may have its own id and key."""
    job_id = uuid.uuid4()
    call = Call(args=(5, 6), job_id=job_id, dedupe_key="five")

    results = samples.add.enqueue_many([(1, 2), {"left": 3, "right": 4}, call])

    assert [(result.args, result.kwargs) for result in results] == [
        ([1, 2], {}),
        ([], {"left": 3, "right": 4}),
        ([5, 6], {}),
    ]
    assert Job.objects.get(pk=job_id).dedupe_key == "five"


def test_one_bad_call_spoils_the_whole_batch_before_anything_is_written(django_assert_num_queries):
    """A batch is stored whole or not at all."""
    with django_assert_num_queries(0), pytest.raises(ArgumentsDoNotFitError):
        samples.add.enqueue_many([(1, 2), (3,)])


def test_member_that_is_no_call_is_refused():
    """A bare value is a slip: its tuple was forgotten."""
    with pytest.raises(InvalidJobError, match="A call is of type str"):
        samples.return_it.enqueue_many(["one", "two"])


def test_empty_batch_is_no_work(django_assert_num_queries):
    """Nothing to do is done without a query."""
    with django_assert_num_queries(0):
        assert len(samples.add.enqueue_many([])) == 0


def test_dedupe_key_callable_sees_the_arguments():
    """The key of a job can be made of what it is about."""
    samples.bill.enqueue(7)
    samples.bill.enqueue(order_id=8)

    assert set(Job.objects.values_list("dedupe_key", flat=True)) == {"order-7", "order-8"}


def test_dedupe_key_callable_must_answer_text():
    """A number would be stored as something else than was compared."""
    with pytest.raises(InvalidJobError, match="answered 3"):
        samples.add.using(dedupe_key=lambda left, right: left + right).enqueue(1, 2)


def test_dedupe_key_callable_may_answer_none():
    """Some jobs of a task have a key and others none."""
    task = samples.add.using(dedupe_key=lambda left, right: None)

    assert not task.enqueue(1, 2).duplicate
    assert not task.enqueue(1, 2).duplicate


def test_backend_reports_a_missing_app(monkeypatch):
    """TASKS alone is not enough: without the app there are no tables."""
    monkeypatch.setattr(apps, "is_installed", lambda name: False)

    [message] = backend().check()

    assert message.id == "django_workqueue.E001"
    assert "INSTALLED_APPS" in message.hint


def test_backend_has_nothing_to_report_otherwise():
    """An installed app is fine."""
    assert backend().check() == []


def test_configured_backend_is_ours():
    """``TASKS`` names the backend by its path."""
    assert type(task_backends["default"]) is WorkQueueBackend


def test_one_enqueue_is_one_statement(django_assert_num_queries):
    """A plain enqueue costs the request one round trip."""
    with django_assert_num_queries(1):
        samples.add.enqueue(1, 2)
