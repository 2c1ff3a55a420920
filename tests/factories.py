"""Rows for tests, one factory per model, with a trait for each state that a row may be in."""

from __future__ import annotations

from datetime import timedelta

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from django_workqueue.domain.fingerprints import fingerprint
from django_workqueue.domain.ids import new_id
from django_workqueue.domain.states import (
    DeathReason,
    Ending,
    FailureKind,
    JobState,
    PauseKind,
    StepState,
    WorkflowState,
)
from django_workqueue.domain.steps import idempotency_key
from django_workqueue.models import (
    DeadLetter,
    Failure,
    FinishedJob,
    Job,
    Lease,
    Pause,
    Queue,
    QueueMinute,
    Schedule,
    Step,
    Worker,
    Workflow,
)
from django_workqueue.models.worker import WorkerState


def ago(**span):
    """Return a declaration of the moment that lies ``span`` (as for timedelta) before now."""
    return factory.LazyFunction(lambda: timezone.now() - timedelta(**span))


def ahead(**span):
    """Return a declaration of the moment that lies ``span`` after now."""
    return factory.LazyFunction(lambda: timezone.now() + timedelta(**span))


class QueueFactory(DjangoModelFactory):
    """A queue. ``paused=True``: a person has paused it."""

    class Meta:
        model = Queue
        skip_postgeneration_save = True

    name = factory.Sequence(lambda number: f"queue-{number}")

    @factory.post_generation
    def paused(self, create, is_paused, **_more):
        """Add the row of its pause."""
        if is_paused:
            PauseFactory(name=self.name)


class PauseFactory(DjangoModelFactory):
    """A pause of a queue, or of what ``kind`` says."""

    class Meta:
        model = Pause
        skip_postgeneration_save = True

    kind = PauseKind.QUEUE
    name = factory.Sequence(lambda number: f"queue-{number}")
    paused_at = ago(minutes=5)
    paused_by = "olga"


class QueueMinuteFactory(DjangoModelFactory):
    """What one worker did in one minute."""

    class Meta:
        model = QueueMinute
        skip_postgeneration_save = True

    queue = "default"
    task = "shop.tasks.send_receipt"
    minute = factory.LazyFunction(lambda: timezone.now().replace(second=0, microsecond=0))
    worker = factory.Sequence(lambda number: f"web1:{number}")
    done = 1


class WorkerFactory(DjangoModelFactory):
    """A worker that is well. ``stopping=True``: it drains. ``silent=True``: not heard of for ten minutes."""

    class Meta:
        model = Worker
        skip_postgeneration_save = True

    class Params:
        stopping = factory.Trait(state=WorkerState.STOPPING)
        silent = factory.Trait(seen_at=ago(minutes=10))

    id = factory.Sequence(lambda number: f"web1:{number}:5f3a")
    name = factory.Sequence(lambda number: f"web{number}")
    host = "shop-7c9d"
    pid = factory.Sequence(lambda number: 1000 + number)
    queues = "default,mail"
    slots = 8
    versions = "django_workqueue 0.1, Django 5.2, Python 3.11"
    started_at = ago(hours=2)
    seen_at = ago(seconds=3)


class LeaseFactory(DjangoModelFactory):
    """A lease that holds. ``lapsed=True``: it was not renewed in time, and nobody has reaped it yet."""

    class Meta:
        model = Lease
        skip_postgeneration_save = True

    class Params:
        lapsed = factory.Trait(renewed_at=ago(seconds=50), expires_at=ago(seconds=20))

    worker = "web1:1:5f3a"
    queue = "default"
    acquired_at = ago(minutes=1)
    renewed_at = ago(seconds=5)
    expires_at = ahead(seconds=25)
    deadline_at = ahead(minutes=59)


class JobColumnsFactory(DjangoModelFactory):
    """The columns that a job has wherever it is."""

    class Meta:
        abstract = True
        skip_postgeneration_save = True

    id = factory.LazyFunction(new_id)
    queue = "default"
    task = "shop.tasks.send_receipt"
    args = "[17]"
    kwargs = '{"copy":true}'
    enqueued_at = ago(minutes=2)


class JobFactory(JobColumnsFactory):
    """
    A live job, ready by default.

    ``scheduled=True``: due in an hour. ``leased=True``: a worker holds it. ``lapsed=True``: that worker went
    silent.
    """

    class Meta:
        model = Job

    class Params:
        scheduled = factory.Trait(state=JobState.SCHEDULED, ready_at=ahead(hours=1))
        leased = factory.Trait(
            state=JobState.LEASED,
            attempts=1,
            lease=factory.SubFactory(LeaseFactory, queue=factory.SelfAttribute("..queue")),
        )
        lapsed = factory.Trait(leased=True, lease__lapsed=True)

    ready_at = ago(minutes=2)


class FinishedJobFactory(JobColumnsFactory):
    """A job that succeeded. ``cancelled=True``: a person took it back before it ran."""

    class Meta:
        model = FinishedJob

    class Params:
        cancelled = factory.Trait(outcome=Ending.CANCELLED, attempts=0, worker="", started_at=None)

    attempts = 1
    outcome = Ending.SUCCEEDED
    result = '{"sent":1}'
    worker = "web1:1:5f3a"
    started_at = ago(seconds=62)
    finished_at = ago(seconds=60)
    expires_at = ahead(days=1)


class FailureFactory(DjangoModelFactory):
    """One failed attempt, by an exception. ``lapsed=True``: its worker was never heard of again."""

    class Meta:
        model = Failure
        skip_postgeneration_save = True

    class Params:
        lapsed = factory.Trait(kind=FailureKind.LAPSED, error_class="", message="", traceback="")

    job_id = factory.LazyFunction(new_id)
    attempt = 1
    kind = FailureKind.ERROR
    error_class = "builtins.ValueError"
    message = "the printer is on fire"
    traceback = 'Traceback (most recent call last):\n  File "tasks.py", line 7\nValueError: the printer'
    worker = "web1:1:5f3a"
    lease_id = 1
    started_at = ago(minutes=2, seconds=2)
    failed_at = ago(minutes=2)


class DeadLetterFactory(JobColumnsFactory):
    """
    A job that used up its attempts.

    ``failures=3`` makes its three Failure rows; ``failures__message="..."`` passes on to each of them.
    ``rejected=True``: its task said that it can never succeed. ``acknowledged=True``: a person has seen it.
    """

    class Meta:
        model = DeadLetter

    class Params:
        rejected = factory.Trait(reason=DeathReason.REJECTED, attempts=1)
        acknowledged = factory.Trait(acknowledged_at=ago(minutes=1), acknowledged_by="olga", note="seen")

    attempts = 5
    reason = DeathReason.EXHAUSTED
    last_error = "ValueError: the printer is on fire"
    fingerprint = factory.LazyAttribute(lambda letter: fingerprint(letter.task, letter.last_error))
    died_at = ago(minutes=1)

    @factory.post_generation
    def failures(self, create, count, **columns):
        """Make the rows of the failed attempts, first to last."""
        for attempt in range(1, (count or 0) + 1):
            FailureFactory(job_id=self.pk, attempt=attempt, **columns)


class StepFactory(DjangoModelFactory):
    """A step that is done. ``unknown=True``: its call was broken off."""

    class Meta:
        model = Step
        skip_postgeneration_save = True

    class Params:
        unknown = factory.Trait(state=StepState.UNKNOWN, outcome="", done_at=None)

    id = factory.LazyFunction(new_id)
    job_id = factory.LazyFunction(new_id)
    name = "charge"
    key = factory.LazyAttribute(lambda step: idempotency_key(step.tenant, step.job_id, step.name))
    tenant = ""
    digest = "d" * 64
    state = StepState.DONE
    outcome = '{"receipt":17}'
    worker = "web1:1:5f3a"
    begun_at = ago(seconds=62)
    done_at = ago(seconds=61)
    expires_at = ahead(days=7)


class ScheduleFactory(DjangoModelFactory):
    """A schedule of the admin, daily at three, not planned yet. ``due=True``: planned, and its time has come."""

    class Meta:
        model = Schedule
        skip_postgeneration_save = True

    class Params:
        due = factory.Trait(
            next_at=ago(seconds=1),
            plan=factory.LazyAttribute(lambda row: Schedule(**_timing(row)).digest),
        )

    name = factory.Sequence(lambda number: f"schedule-{number}")
    task = "tests.samples.add"
    args = "[1,2]"
    cron = "0 3 * * *"
    zone = "UTC"
    created_at = ago(days=2)


def _timing(row):
    """Return the columns that a plan depends on."""
    given = ("cron", "interval", "zone", "starts_at", "ends_at", "enabled", "created_at")
    return {name: getattr(row, name) for name in given if hasattr(row, name)}


class WorkflowFactory(DjangoModelFactory):
    """A workflow that runs. ``failed=True``: a member of it died."""

    class Meta:
        model = Workflow
        skip_postgeneration_save = True

    class Params:
        failed = factory.Trait(
            state=WorkflowState.FAILED,
            culprit=factory.LazyFunction(new_id),
            problem="ValueError: the printer is on fire",
            ended_at=ago(seconds=20),
            expires_at=ahead(days=1),
        )

    id = factory.LazyFunction(new_id)
    title = "chain(send_receipt)"
    size = 3
    done = 1
    retention = timedelta(days=1)
    enqueued_at = ago(minutes=1)
