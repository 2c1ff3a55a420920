"""The steps of a job on its page: what a person needs who must decide about an unknown one."""

from __future__ import annotations

import pytest

from django_workqueue.domain.steps import idempotency_key
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, StepFactory

from .pages import page

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("factory", "place"), [(JobFactory, "job"), (DeadLetterFactory, "deadletter"), (FinishedJobFactory, "finishedjob")]
)
def test_steps_are_shown_wherever_the_job_is(viewer, factory, place):
    """With their state, worker and key; what they returned is not shown."""
    job = factory()
    done, unknown = (
        StepFactory(job_id=job.pk, outcome='"secret"'),
        StepFactory(job_id=job.pk, name="mail", unknown=True),
    )
    StepFactory(name="of another job")

    response = viewer.get(page(place, job.pk))

    assert [taken.step.pk for taken in response.context["steps"]] == [done.pk, unknown.pk]
    content = response.content.decode()
    assert all(text in content for text in (done.key, unknown.key, "web1:1:5f3a", "Unknown"))
    assert "secret" not in content
    assert "of another job" not in content


def test_job_shows_its_key_and_no_table_without_steps(viewer):
    """The key is what log records and vendors know it by."""
    job = JobFactory(tenant="acme")

    content = viewer.get(page("job", job.pk)).content.decode()

    assert idempotency_key("acme", job.pk) in content
    assert "workqueue-steps" not in content


def test_outcome_that_was_not_stored_is_told_from_one_that_was(viewer):
    """It is done, and yet a person must say what came of it."""
    job = DeadLetterFactory()
    StepFactory(job_id=job.pk, outcome="")

    assert "Done, outcome not stored" in viewer.get(page("deadletter", job.pk)).content.decode()
