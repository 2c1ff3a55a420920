"""Deploys that leave workers and stored jobs of different ages beside each other."""

from __future__ import annotations

import pytest

from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, Job
from tests.factories import JobFactory

from . import tasks
from .harness import failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]


def test_unknown_task_harms_nobody_and_comes_back_by_an_alias(fleet, diary):
    """It is put off uncharged, then dead with its reason, and requeued once its new name is known (delayed_job#77)."""
    job = JobFactory(task="tests.acceptance.tasks.its_former_name", args='["kept"]', kwargs="{}", max_attempts=1)
    others = tasks.record.enqueue_many([()] * 5)
    worker = fleet.start("--concurrency", "1", **settings(unknown_task_patience=1.5))
    wait_for_books(others, succeeded=5)
    wait_until(lambda: len(failure_kinds(job)) > 1, "the job to be put off twice")
    assert Job.objects.get(pk=job.id).attempts == 0

    wait_for_books([job], unknown_task=1)
    assert set(failure_kinds(job)) == {"unknown_task"}
    assert "its_former_name" in DeadLetter.objects.get().last_error
    assert worker.stop() == 0

    aliases = {"tests.acceptance.tasks.its_former_name": "tests.acceptance.tasks.record"}
    fleet.start("--concurrency", "1", **settings(aliases=aliases))
    assert operate.requeue([job.id]).job_ids == [job.id]
    wait_for_books([job], succeeded=1)
    assert diary.starts(str(job.id))[0].note == "kept"
