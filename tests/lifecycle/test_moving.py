"""Letting jobs run now, elsewhere or sooner: checked, told by name, and heard of by workers."""

from __future__ import annotations

import logging
import uuid

import pytest

from django_workqueue.domain.states import JobState
from django_workqueue.exceptions import InvalidJobError
from django_workqueue.lifecycle import operate
from django_workqueue.models import Job
from tests.claims import claim_one
from tests.factories import FinishedJobFactory, JobFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def woken(monkeypatch):
    """Return the lanes that workers are told of."""
    lanes = []
    monkeypatch.setattr("django_workqueue.lifecycle.moving.wake", lambda _store, given: lanes.extend(given))
    return lanes


def test_job_that_runs_now_wakes_its_lane(store, woken):
    """Nobody waits for the next poll."""
    job = JobFactory(scheduled=True)

    assert operate.run_now([job.pk]).job_ids == [job.pk]

    assert woken == [("default", "")]
    assert claim_one(store).id == job.pk


def test_job_that_moved_wakes_its_new_lane_unless_it_is_scheduled(woken):
    """There is nothing to do yet for one whose time has not come."""
    ready, scheduled = JobFactory(tenant="acme"), JobFactory(scheduled=True)

    operate.move([ready.pk, scheduled.pk], queue="mail")

    assert woken == [("mail", "acme")]
    assert set(Job.objects.values_list("queue", flat=True)) == {"mail"}


@pytest.mark.parametrize("act", [operate.run_now, lambda ids: operate.move(ids, priority=5)], ids=["run_now", "move"])
def test_refusals_are_named_and_do_not_stop_the_others(act):
    """A batch is many single acts."""
    held, over, missing, fine = JobFactory(leased=True), FinishedJobFactory(), uuid.uuid4(), JobFactory(scheduled=True)

    done = act([held.pk, over.pk, missing, fine.pk])

    assert done.job_ids == [fine.pk]
    assert [refusal.job_id for refusal in done.refused] == [held.pk, over.pk, missing]
    assert all(str(refusal.job_id) in refusal.problem for refusal in done.refused)


def test_clash_of_keys_is_a_refusal_that_names_the_holder():
    """The job stays where it was."""
    job, holder = JobFactory(dedupe_key="k"), JobFactory(dedupe_key="k", queue="mail")

    done = operate.move([job.pk], queue="mail")

    assert done.job_ids == []
    assert str(holder.pk) in done.refused[0].problem
    assert Job.objects.get(pk=job.pk).queue == "default"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, "Neither queue nor priority"),
        ({"priority": 101}, "101"),
        ({"priority": True}, "True"),
        ({"queue": ""}, "queue is empty"),
        ({"queue": "a" * 101}, "101 characters"),
        ({"queue": "a\nb"}, "control characters"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_done(changes, problem):
    """By name."""
    job = JobFactory()

    with pytest.raises(InvalidJobError, match=problem):
        operate.move([job.pk], **changes)

    assert Job.objects.get().priority == 0


def test_slot_that_a_moved_job_leaves_goes_to_the_next(django_capture_on_commit_callbacks):
    """And the moved one takes a slot of its key in the new queue, where there is one."""
    keyed = {"concurrency_key": "printer", "concurrency_limit": 1}
    admitted, waiting = JobFactory(**keyed), JobFactory(state=JobState.BLOCKED, **keyed)

    with django_capture_on_commit_callbacks(execute=True):
        operate.move([admitted.pk], queue="mail")

    assert Job.objects.get(pk=waiting.pk).state == JobState.READY
    moved = Job.objects.get(pk=admitted.pk)
    assert (moved.queue, moved.state) == ("mail", JobState.READY)


def test_tenant_reaches_no_other_tenants_jobs():
    """Nor learns that they exist."""
    job = JobFactory(scheduled=True, tenant="acme")

    assert operate.run_now([job.pk], tenant="globex").job_ids == []
    assert operate.move([job.pk], priority=5, tenant="globex").job_ids == []
    assert operate.move([job.pk], priority=5, tenant="acme").job_ids == [job.pk]


def test_both_are_logged_with_the_job(caplog):
    """Somebody did this."""
    job = JobFactory(scheduled=True)
    with caplog.at_level(logging.INFO, logger="django_workqueue"):
        operate.move([job.pk], queue="mail")
        operate.run_now([job.pk])

    assert [record.job_id for record in caplog.records] == [str(job.pk)] * 2
