"""Hooks before an enqueue: what they see, what they may change, and that the checks come after them."""

from __future__ import annotations

import contextvars

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_workqueue import InvalidJobError, correlation_id
from django_workqueue.lifecycle.enqueue import JobRequest, enqueue
from django_workqueue.models import Job
from django_workqueue.testing import DummyBackend, ImmediateBackend
from tests import hooking, samples

pytestmark = pytest.mark.django_db

BACKEND = {"BACKEND": "django_workqueue.backend.WorkQueueBackend"}


@pytest.fixture
def hook(settings):
    """Return a function that puts hooks of ``tests.hooking`` into force."""
    hooking.log.clear()

    def put(*names: str) -> None:
        settings.WORKQUEUE = {"ENQUEUE_HOOKS": [f"tests.hooking.{name}" for name in names]}

    return put


def alone(function):
    """Run ``function`` in a context of its own, as a request is."""
    return contextvars.Context().run(function)


def test_hook_sees_what_is_asked_for(hook):
    """Task, queue, tenant, priority, and the metadata with the trace in it."""
    hook("note_enqueue")

    def request():
        correlation_id.set("req-1")
        samples.send.enqueue("a@example.com")

    alone(request)

    metadata = {"correlation_id": "req-1", "team": "shop"}
    assert hooking.log == [("tests.samples.send", "mail", "acme", 7, metadata)]


def test_hook_changes_where_the_job_goes(hook):
    """Queue, priority and metadata; the name of the queue is mended as a caller's is."""
    hook("to_slow_lane")

    samples.add.using(metadata={"user": 3}).enqueue(1, 2)

    job = Job.objects.get()
    assert (job.queue, job.priority, job.decoded_metadata) == ("slow", -7, {"user": 3, "moved": True})
    assert job.decoded_args == [1, 2]


def test_tenant_of_the_request_travels_with_the_job(hook):
    """Nobody has to name it at each enqueue, and whoever does is obeyed (django-tenants/django-tenants#549)."""
    hook("set_tenant")

    def request():
        hooking.current_tenant.set("acme")
        samples.add.enqueue(1, 2)
        samples.add.using(tenant="globex").enqueue(1, 2)

    alone(request)

    assert list(Job.objects.order_by("id").values_list("tenant", flat=True)) == ["acme", "globex"]


def test_hooks_are_called_in_order_for_each_job(hook):
    """Of an ``enqueue_many`` too; the second sees what the first has done."""
    hook("to_slow_lane", "note_enqueue")

    samples.add.enqueue_many([(1, 2), (3, 4)])

    assert hooking.log == [("tests.samples.add", "slow/", "", -7, {"moved": True})] * 2


def test_hook_changes_nothing_of_the_task(hook):
    """The metadata of a task is the same for all its jobs."""
    hook("to_slow_lane")

    samples.send.enqueue("a@example.com")

    assert samples.send.metadata == {"team": "shop"}
    assert (samples.send.queue_name, samples.send.priority) == ("mail", 7)


def test_hook_may_keep_a_job_out_of_the_story(hook):
    """What it takes out of the metadata is not put back."""
    hook("leave_story")

    def request():
        correlation_id.set("req-1")
        samples.add.enqueue(1, 2)

    alone(request)

    assert Job.objects.get().decoded_metadata == {}


def test_error_of_a_hook_is_the_enqueues(hook):
    """Nothing is stored, of many jobs none."""
    hook("refuse")

    with pytest.raises(hooking.RefusedError, match="no tests"):
        samples.add.enqueue_many([(1, 2), (3, 4)])

    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("set_bad_priority", InvalidJobError, "priority is 1000"),
        ("set_bad_metadata", InvalidJobError, "metadata is None"),
        ("set_task", AttributeError, "task"),
    ],
)
def test_change_that_cannot_be_is_refused(hook, name, error, message):
    """By name, as if the caller had asked for it."""
    hook(name)

    with pytest.raises(error, match=message):
        samples.add.enqueue(1, 2)

    assert not Job.objects.exists()


def test_queue_of_a_hook_must_be_permitted(hook, settings):
    """A job in a queue that no worker is meant to serve would wait for ever."""
    hook("to_slow_lane")
    settings.TASKS = {"default": {**BACKEND, "QUEUES": ["default"]}}

    with pytest.raises(InvalidJobError, match=r"put tests\.samples\.add into the queue 'slow/', which TASKS does not"):
        samples.add.enqueue(1, 2)

    settings.TASKS = {"default": {**BACKEND, "QUEUES": ["default", "slow"]}}
    samples.add.enqueue(1, 2)
    assert Job.objects.get().queue == "slow"


def test_jobs_of_schedules_and_workflows_are_seen_too(hook):
    """They come by the same door, without a backend."""
    hook("to_slow_lane")

    enqueue([JobRequest(task="tests.samples.add")])

    assert Job.objects.get().queue == "slow"


@pytest.mark.parametrize("backend", [DummyBackend, ImmediateBackend])
def test_backends_for_tests_call_the_hooks(hook, settings, backend):
    """A test sees the jobs that production sees."""
    hook("note_enqueue")
    settings.TASKS = {"default": {"BACKEND": f"django_workqueue.testing.{backend.__name__}", "QUEUES": []}}

    samples.add.enqueue(1, 2)

    assert hooking.log == [("tests.samples.add", "default", "", 0, {})]


def test_hook_that_cannot_be_found_is_named(settings):
    """By the check at first; whoever passes that by is told at the first enqueue."""
    settings.WORKQUEUE = {"ENQUEUE_HOOKS": ["tests.hooking.missing"]}

    with pytest.raises(ImproperlyConfigured, match=r"'tests\.hooking\.missing' cannot be imported"):
        samples.add.enqueue(1, 2)


def test_hooks_are_found_once(hook, monkeypatch):
    """Not once for each job."""
    hook("note_enqueue")
    samples.add.enqueue(1, 2)
    monkeypatch.delattr(hooking, "note_enqueue")

    samples.add.enqueue(1, 2)

    assert len(hooking.log) == 2
