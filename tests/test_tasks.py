"""``@task`` and ``WorkTask``: the options of a task, and what a call may vary."""

from __future__ import annotations

import copy
import inspect
import pickle
import uuid
from datetime import timedelta

import django
import pytest

import django_workqueue
from django_workqueue import InvalidJobError, WorkTask, task
from django_workqueue.domain.contract import Task
from django_workqueue.models import Job

from . import samples


def test_task_is_a_task_of_django():
    """Whatever takes a task of ``django.tasks`` takes ours."""
    assert isinstance(samples.add, Task)
    assert samples.add.module_path == "tests.samples.add"
    assert samples.add.name == "add"


def test_task_can_be_called_directly():
    """``call`` runs the function here and now, as Django documents."""
    assert samples.add.call(1, 2) == 3
    assert samples.add_async.call(1, 2) == 3


def test_decorator_works_with_and_without_parentheses():
    """Both spellings of Django's decorator exist here."""
    bare, called = task(samples.add.func), task()(samples.add.func)

    assert bare == called


@pytest.mark.parametrize("option", ["run_after", "job_id"])
def test_options_of_a_single_job_are_refused_on_the_task(option):
    """A time or an id fixed at import would be that of every job."""
    with pytest.raises(TypeError, match=rf"using\({option}="):
        task(**{option: None})


def test_unknown_option_is_refused():
    """A misspelt option must not be ignored."""
    with pytest.raises(TypeError, match="max_atempts"):
        task(max_atempts=3)(samples.add.func)


@pytest.mark.parametrize("seconds", [60, 60.0, timedelta(minutes=1)])
def test_durations_are_seconds_or_timedeltas(seconds):
    """One rule for every duration of the package."""
    made = task(retention=seconds, backoff=seconds, timeout=seconds)(samples.add.func)

    assert made.retention == made.timeout == timedelta(minutes=1)
    assert made.backoff == timedelta(minutes=1)


@pytest.mark.parametrize("value", [-1, "60", True])
def test_unusable_duration_is_refused(value):
    """Text, truth values and the past are no durations."""
    with pytest.raises(InvalidJobError, match="retention"):
        task(retention=value)(samples.add.func)
    with pytest.raises(InvalidJobError, match="timeout"):
        task(timeout=value)(samples.add.func)


def test_timeout_of_zero_is_refused():
    """No attempt could even begin."""
    with pytest.raises(InvalidJobError, match="more than zero"):
        task(timeout=0)(samples.add.func)


def test_using_changes_a_copy():
    """The task itself stays as it was declared."""
    varied = samples.send.using(tenant="globex", priority=1, dedupe_key="k", job_id=uuid.UUID(int=1))

    assert (varied.tenant, varied.priority, varied.dedupe_key) == ("globex", 1, "k")
    assert (samples.send.tenant, samples.send.priority, samples.send.dedupe_key) == ("acme", 7, None)


def test_using_keeps_what_is_not_given():
    """A call varies one thing without repeating the others."""
    varied = samples.send.using(priority=1)

    assert (varied.tenant, varied.max_attempts, varied.queue_name) == ("acme", 2, "mail")


def test_using_adds_to_the_metadata():
    """What the task declares and what the caller adds both travel."""
    assert samples.send.using(metadata={"user": 3}).metadata == {"team": "shop", "user": 3}


def test_using_takes_every_option_that_a_call_may_vary():
    """What a job stores can be set for one job; the rest is read from the declared task, and refused here."""
    of_the_task = {"func", "takes_context", "atomic", "reject_on", "backoff", "timeout", "retention"}
    fields = set(WorkTask.__dataclass_fields__) - of_the_task

    assert set(inspect.signature(WorkTask.using).parameters) - {"self"} == fields


def test_slash_at_the_end_makes_no_other_queue():
    """``mail`` and ``mail/`` are one queue, on the task and at the call."""
    assert samples.add.using(queue_name="mail/").queue_name == "mail"


@pytest.mark.django_db
def test_options_of_the_task_reach_the_job():
    """Every option that a job keeps is on its row."""
    result = samples.send.using(dedupe_key="k").enqueue("a@example.com", copy=True)

    job = Job.objects.get(pk=result.id)
    assert (job.queue, job.tenant, job.priority, job.max_attempts) == ("mail", "acme", 7, 2)
    assert (job.decoded_args, job.decoded_kwargs) == (["a@example.com"], {"copy": True})
    assert job.decoded_metadata == {"team": "shop"}
    assert (job.dedupe_key, job.dedupe_until_start) == ("k", False)


@pytest.mark.django_db
def test_id_that_the_caller_chose_is_the_jobs(store):
    """A caller may name the job before it exists, in an e-mail for instance."""
    job_id = uuid.uuid4()

    assert samples.add.using(job_id=job_id).enqueue(1, 2).id == str(job_id)


def test_task_can_be_hashed_and_compared():
    """Tasks are values, for caches and sets, also with metadata."""
    assert samples.send.using(priority=7) == samples.send
    assert len({samples.send, samples.send.using(metadata={"user": 3})}) == 2


@pytest.mark.skipif(django.VERSION < (6, 1), reason="The backport's tasks cannot be pickled.")
def test_task_survives_pickling():
    """Django 6.1 pickles tasks; ours bring their options along."""
    varied = samples.send.using(run_after=timedelta(minutes=1), max_attempts=3)

    assert pickle.loads(pickle.dumps(varied)) == varied


def test_task_survives_copying():
    """A copy is the same task."""
    assert copy.copy(samples.send) == samples.send


@pytest.mark.parametrize("backend", ["immediate", "dummy"])
def test_tasks_can_be_declared_on_djangos_own_backends(settings, backend):
    """A project whose tests use Django's backends imports its tasks with our options all the same."""
    contract = Task.__module__.rpartition(".")[0]
    settings.TASKS = {"default": {"BACKEND": f"{contract}.backends.{backend}.{backend.title()}Backend"}}

    made = task(tenant="acme", dedupe_key="k", retention=5)(samples.add.func)

    assert made.enqueue(1, 2).task.tenant == "acme"


def test_batch_works_on_djangos_own_backends(settings):
    """They know no batches, so each job is enqueued by itself."""
    contract = Task.__module__.rpartition(".")[0]
    settings.TASKS = {"default": {"BACKEND": f"{contract}.backends.immediate.ImmediateBackend"}}

    results = samples.add.enqueue_many([(1, 2), {"left": 3, "right": 4}])

    assert [result.return_value for result in results] == [3, 7]


def test_task_on_an_unknown_backend_is_refused():
    """The alias must be one of TASKS."""
    with pytest.raises(Exception, match="nowhere"):
        samples.add.using(backend="nowhere")


@pytest.mark.parametrize("name", django_workqueue.__all__)
def test_public_name_can_be_imported(name):
    """Everything that the package lists is there, also what is loaded late."""
    assert getattr(django_workqueue, name) is not None


def test_name_that_is_not_public_is_missing():
    """The late loading does not swallow slips."""
    with pytest.raises(AttributeError, match="tsak"):
        django_workqueue.tsak  # noqa: B018 - reading is what raises
