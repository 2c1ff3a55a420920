"""Doing something to many dead letters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from django_workqueue.admin.dead_letters import DeadLetterAdminMixin
from django_workqueue.admin.decisions import DISCARD, REQUEUE
from django_workqueue.admin.operations import perform
from django_workqueue.domain.ids import new_id
from django_workqueue.models import DeadLetter
from tests.factories import DeadLetterFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("operation", "problem"), [(REQUEUE, "There is no job"), (DISCARD, "is no longer there")])
def test_letter_that_another_person_took_meanwhile_is_told(operation, problem):
    """Two people decide at once: the second is told, and the log says nothing that was not done."""
    DeadLetterFactory.create_batch(2)

    def act(job_id, database, options):
        DeadLetter.objects.exclude(pk=job_id).delete()
        return operation.act(job_id, database, options)

    tally = perform(
        replace(operation, act=act),
        DeadLetter.objects.all(),
        DeadLetterAdminMixin.keyset,
        user_id=User.objects.create_user("vera").pk,
        database="default",
        options={"by": "vera", "tenants": None, "replay": str(new_id())},
    )

    assert (tally.done, len(tally.problems), tally.more) == (1, 1, False)
    assert problem in tally.problems[0]
    assert LogEntry.objects.count() == 1
