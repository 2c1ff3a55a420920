"""Rows of a tenant that nobody of another may see, with a word in each text by which a page that shows one is known."""

from __future__ import annotations

from django.db import models as fields

from django_workqueue.domain.ids import new_id
from django_workqueue.domain.states import PauseKind
from django_workqueue.models import WorkflowMember
from tests.factories import (
    DeadLetterFactory,
    FailureFactory,
    FinishedJobFactory,
    JobFactory,
    LeaseFactory,
    PauseFactory,
    QueueMinuteFactory,
    ScheduleFactory,
    StepFactory,
    WorkflowFactory,
)

WORD = "zzsecretzz"
RIVAL = "rival"
QUEUE = "rival-queue"


def marked(model, **columns):
    """Return WORD for every column of ``model`` that holds text, but for ``columns``."""
    names = {field.name for field in model._meta.concrete_fields}
    given = {name: value for name, value in (("tenant", RIVAL), ("queue", QUEUE)) if name in names}
    told = {
        field.name: WORD[: field.max_length]
        for field in model._meta.concrete_fields
        if isinstance(field, fields.CharField | fields.TextField) and not field.choices and not field.primary_key
    }
    return told | given | columns


def make(factory, **columns):
    """Make one row of the rival, with the word wherever it fits."""
    return factory(**marked(factory._meta.model, **columns))


def rival_rows():
    """Make a row of the rival for every screen, and what hangs on it. Return them by the name of their model."""
    lease = make(LeaseFactory)
    rows = {
        "job": make(JobFactory, leased=True, lease=lease, attempts=1),
        "finishedjob": make(FinishedJobFactory),
        "deadletter": make(DeadLetterFactory, fingerprint="f1234"),
        "workflow": make(WorkflowFactory, failed=True),
        "schedule": make(ScheduleFactory, cron="0 3 * * *", zone="UTC"),
        "pause": make(PauseFactory, kind=PauseKind.TENANT, name=RIVAL),
        "lease": lease,
    }
    for model in ("job", "finishedjob", "deadletter"):
        make(FailureFactory, job_id=rows[model].pk)
        make(StepFactory, job_id=rows[model].pk, key=f"{WORD}-{model}")
    member = marked(WorkflowMember) | {"id": new_id(), "workflow": rows["workflow"], "position": 0, "last": 0}
    WorkflowMember.objects.bulk_create([WorkflowMember(**member)])
    make(QueueMinuteFactory, wait_histogram="1", run_histogram="1")
    return rows
