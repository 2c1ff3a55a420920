"""What is decided about dead letters: how they come back, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.domain.ids import new_id
from django_workqueue.exceptions import (
    ArgumentsDoNotFitError,
    DuplicateJobError,
    InvalidJobError,
    JobNotFoundError,
    PayloadError,
    TaskNotRegisteredError,
)
from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, Job
from tests.factories import DeadLetterFactory, JobFactory

pytestmark = pytest.mark.django_db

TASK = "tests.samples.add"


def test_spread_requeue_comes_due_over_the_time():
    """Each has its own moment, the same whenever it is asked: a job that is run again does not bunch them."""
    letters = DeadLetterFactory.create_batch(20)

    operate.requeue([letter.pk for letter in letters], spread=timedelta(hours=1))

    due = sorted(Job.objects.values_list("ready_at", flat=True))
    assert set(Job.objects.values_list("state", flat=True)) == {"scheduled"}
    assert len(set(due)) == 20
    assert timedelta(minutes=10) < due[-1] - due[0] < timedelta(minutes=61)


def test_requeue_to_another_queue_clashes_with_its_keys():
    """A dedupe key holds in one queue; where the letter goes is where it must be free."""
    letter = DeadLetterFactory(dedupe_key="order-1")
    JobFactory(queue="slow", dedupe_key="order-1")

    refused = operate.requeue([letter.pk], queue="slow").refused
    assert [refusal.job_id for refusal in refused] == [letter.pk]
    assert operate.requeue([letter.pk], queue="fast").job_ids == [letter.pk]
    assert Job.objects.get(pk=letter.pk).queue == "fast"


@pytest.mark.parametrize("given", [{"queue": ""}, {"queue": "a\nb"}, {"spread": timedelta(-1)}, {"attempts": 0}])
def test_what_no_job_may_have_is_refused_before_anything_is_written(given):
    """Bad input is refused at the door, by name."""
    letter = DeadLetterFactory()

    with pytest.raises(InvalidJobError):
        operate.requeue([letter.pk], **given)
    assert DeadLetter.objects.get() == letter


@pytest.mark.parametrize(
    ("columns", "args", "error"),
    [
        ({}, [1, 2, 3], ArgumentsDoNotFitError),
        ({}, [object(), 1], PayloadError),
        ({"task": "nowhere.tasks.gone"}, [1, 2], TaskNotRegisteredError),
        ({"dedupe_key": "taken"}, [1, 2], DuplicateJobError),
    ],
)
def test_other_arguments_are_checked_as_at_enqueue(columns, args, error):
    """A letter that an enqueue would refuse stays where it is."""
    letter = DeadLetterFactory(**({"task": TASK} | columns))
    JobFactory(dedupe_key="taken")

    with pytest.raises(error):
        operate.amend(letter.pk, args=args, kwargs={})
    assert DeadLetter.objects.get().args == letter.args


def test_amend_keeps_to_the_tenant():
    """Who acts for one tenant does not learn what another has."""
    letter = DeadLetterFactory(task=TASK, tenant="acme")

    for job_id in (letter.pk, new_id()):
        with pytest.raises(JobNotFoundError):
            operate.amend(job_id, args=[1, 2], kwargs={}, tenant="zeta")


def test_acknowledged_are_those_that_were_there():
    """The answer tells; a note too long is refused before anything is written."""
    letter, other = DeadLetterFactory(), DeadLetterFactory(tenant="acme")

    assert operate.acknowledge([new_id(), letter.pk], by="olga", note="mine") == [letter.pk]
    assert operate.acknowledge([other.pk], by="olga", tenant="zeta") == []
    letter.refresh_from_db()
    assert (letter.acknowledged_by, letter.note) == ("olga", "mine")
    for given in ({"by": ""}, {"by": "olga", "note": "x" * 2001}, {"by": "olga", "note": "\x00"}):
        with pytest.raises(InvalidJobError):
            operate.acknowledge([letter.pk], **given)


def test_what_was_requeued_together_has_an_id_in_common(caplog):
    """Weeks later somebody asks which jobs were put back that night, and by which request."""
    caplog.set_level("INFO", logger="django_workqueue.operate")
    letters = [DeadLetterFactory(metadata='{"team":"shop"}') for _ in range(2)]

    done = operate.requeue([letter.pk for letter in letters])
    again = operate.requeue([DeadLetterFactory().pk])

    metadata = [Job.objects.get(pk=letter.pk).decoded_metadata for letter in letters]
    assert metadata == [{"team": "shop", "_replay": str(done.replay)}] * 2
    assert again.replay != done.replay
    assert [record.replay for record in caplog.records] == [str(done.replay)] * 2 + [str(again.replay)]


def test_metadata_that_cannot_be_read_keep_nothing_from_coming_back():
    """The attempt will say what is wrong with them."""
    letter = DeadLetterFactory(metadata="[not json")

    operate.requeue([letter.pk])

    assert Job.objects.get(pk=letter.pk).metadata == "[not json"
