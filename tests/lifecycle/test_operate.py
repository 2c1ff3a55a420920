"""What people do: put back, discard, prune, and look."""

from __future__ import annotations

import logging
import uuid

import pytest

from django_workqueue.exceptions import (
    InvalidJobError,
    InvalidStepError,
    PayloadError,
    StepInFlightError,
    StepNotFoundError,
)
from django_workqueue.lifecycle import operate
from django_workqueue.lifecycle.enqueue import MAX_ATTEMPTS
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Step
from tests.claims import claim_one
from tests.factories import (
    DeadLetterFactory,
    FinishedJobFactory,
    JobFactory,
    QueueFactory,
    StepFactory,
    WorkerFactory,
    ago,
)

pytestmark = pytest.mark.django_db


# -- requeue -----------------------------------------------------------------------------------------------------------


def test_requeued_job_gets_its_queues_attempts(settings):
    """Unless the operator says how many (felixmosh/bull-board#737)."""
    settings.WORKQUEUE = {"MAX_ATTEMPTS": 3, "QUEUES": {"mail": {"MAX_ATTEMPTS": 7}}}
    letters = [
        DeadLetterFactory(attempts=3),
        DeadLetterFactory(attempts=3, queue="mail"),
        DeadLetterFactory(attempts=3),
    ]

    operate.requeue([letters[0].pk, letters[1].pk])
    operate.requeue([letters[2].pk], attempts=1)

    assert [Job.objects.get(pk=letter.pk).max_attempts for letter in letters] == [6, 10, 4]


def test_requeued_job_can_be_claimed_at_once(store):
    """Its old due time and its failures hold nothing back."""
    letter = DeadLetterFactory(died_at=ago(days=1), failures=3)
    operate.requeue([letter.pk])

    assert claim_one(store).id == letter.pk
    assert Failure.objects.filter(job_id=letter.pk).count() == 3


def test_refusal_is_named_and_does_not_stop_the_others():
    """A batch is many single acts."""
    taken = DeadLetterFactory(dedupe_key="k")
    JobFactory(dedupe_key="k")
    fine, missing = DeadLetterFactory(), uuid.uuid4()

    done = operate.requeue([taken.pk, missing, fine.pk])

    assert done.job_ids == [fine.pk]
    assert [refusal.job_id for refusal in done.refused] == [taken.pk, missing]
    assert "is live with the same id or dedupe key" in done.refused[0].problem
    assert str(missing) in done.refused[1].problem


@pytest.mark.parametrize("attempts", [0, -1, MAX_ATTEMPTS + 1])
def test_number_of_attempts_is_checked_before_anything_is_done(attempts):
    """The letters stay where they are."""
    letter = DeadLetterFactory()

    with pytest.raises(InvalidJobError, match=str(attempts)):
        operate.requeue([letter.pk], attempts=attempts)

    assert DeadLetter.objects.exists()


def test_another_tenants_letter_is_not_found():
    """Nor does the answer reveal that it exists."""
    letter = DeadLetterFactory(tenant="acme")

    done = operate.requeue([letter.pk], tenant="globex")

    assert done.job_ids == []
    assert done.refused[0].problem == operate.requeue([missing := uuid.uuid4()]).refused[0].problem.replace(
        str(missing), str(letter.pk)
    )
    assert operate.discard([letter.pk], tenant="globex") == []
    assert operate.requeue([letter.pk], tenant="acme").job_ids == [letter.pk]


def test_requeue_is_logged_with_the_job(caplog):
    """Somebody did this."""
    letter = DeadLetterFactory()
    with caplog.at_level(logging.INFO, logger="django_workqueue"):
        operate.requeue([letter.pk])

    assert caplog.records[0].job_id == str(letter.pk)


# -- dead letters ------------------------------------------------------------------------------------------------------


def test_dead_letters_are_listed_oldest_first_and_bounded():
    """Of one tenant or queue, or of all."""
    young = DeadLetterFactory(died_at=ago(minutes=1), tenant="acme")
    old = DeadLetterFactory(died_at=ago(days=1), queue="mail")
    middle = DeadLetterFactory(died_at=ago(hours=1), tenant="acme", queue="mail")

    assert operate.dead_letters() == [old, middle, young]
    assert operate.dead_letters(limit=1) == [old]
    assert operate.dead_letters(tenant="acme") == [middle, young]
    assert operate.dead_letters(tenant="") == [old]
    assert operate.dead_letters(tenant="acme", queue="mail") == [middle]


def test_discarded_letters_are_named():
    """Those that were there."""
    letter = DeadLetterFactory(failures=2)

    assert operate.discard([uuid.uuid4(), letter.pk]) == [letter.pk]
    assert not (DeadLetter.objects.exists() or Failure.objects.exists())  # noqa: PT018 - both went together


# -- prune, reap -------------------------------------------------------------------------------------------------------


def test_prune_follows_the_settings(settings):
    """Dead letters go only where a project says so."""
    FinishedJobFactory(expires_at=ago(seconds=1))
    DeadLetterFactory(died_at=ago(days=40))

    assert operate.prune().total == 1
    settings.WORKQUEUE = {"DEAD_RETENTION": 30 * 86400}
    assert operate.prune().dead == 1
    assert not FinishedJob.objects.exists()


def test_reaping_once_takes_all_that_has_lapsed(store):
    """However many leases that are."""
    JobFactory.create_batch(25)
    for _ in range(25):
        claim_one(store)
    store.shift(31)

    assert len(operate.reap_once()) == 25
    assert operate.reap_once() == []


# -- patterns and statistics -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "queue", "serves"),
    [
        ("*", "mail", True),
        ("mail", "mail", True),
        ("mail", "mailing", False),
        ("mail*", "mailing", True),
        ("a,b*,!bad", "bad", False),
        ("a,b*,!bad", "big", True),
        ("!spam", "mail", False),
        ("*,!spam*", "spam-2", False),
        ("[ab]?", "a1", True),
        ("Mail", "mail", False),
    ],
)
def test_patterns_are_those_of_a_shell(patterns, queue, serves):
    """With capitals kept apart, and exclusions before all."""
    assert operate.serves(patterns, queue) is serves


def test_statistics_count_the_live_workers_of_each_queue():
    """A queue that nobody serves is flagged, however many workers there are (Techiebutler/freeframe#240)."""
    QueueFactory(name="mail")
    JobFactory(queue="defualt")
    WorkerFactory(queues="mail,default")
    WorkerFactory(queues="*,!defualt")
    WorkerFactory(queues="*", silent=True)

    found = {row.queue: row for row in operate.stats()}

    assert (found["mail"].workers, found["defualt"].workers) == (2, 0)
    assert (found["mail"].unserved, found["defualt"].unserved) == (False, True)


def test_silence_outlasts_missed_beats(settings):
    """A worker that missed two beats is not gone yet."""
    settings.WORKQUEUE = {"HEARTBEAT": 4}

    assert operate.silence().total_seconds() == 13


# -- steps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["begun", "unknown"])
def test_unknown_step_is_settled_by_who_found_out(state, caplog):
    """With the outcome that a replay is to be given; the log says who asks for it and not what it is."""
    step = StepFactory(state=state, outcome="", done_at=None, lease_id=17)
    with caplog.at_level(logging.WARNING, logger="django_workqueue"):
        operate.resolve_step(step.job_id, "charge", happened=True, outcome={"receipt": "secret"})

    step.refresh_from_db()
    assert (step.state, step.outcome) == ("done", '{"receipt":"secret"}')
    assert step.done_at is not None
    assert "it happened" in caplog.text
    assert "secret" not in caplog.text


def test_step_that_did_not_happen_is_free_again():
    """The job, once requeued, does it anew."""
    step = StepFactory(unknown=True)
    operate.resolve_step(step.job_id, "charge", happened=False)

    assert not Step.objects.exists()


def test_outcome_that_could_not_be_stored_is_given_by_a_person():
    """That it happened is known, so it cannot be said not to have."""
    step = StepFactory(outcome="")
    with pytest.raises(InvalidStepError, match="is on record as done"):
        operate.resolve_step(step.job_id, "charge", happened=False)
    operate.resolve_step(step.job_id, "charge", happened=True, outcome="receipt 17")

    assert Step.objects.get().outcome == '"receipt 17"'


@pytest.mark.parametrize("happened", [True, False])
def test_step_that_is_done_cannot_be_resolved(happened):
    """What was handled stays handled; a second effect is another step."""
    step = StepFactory()
    with pytest.raises(InvalidStepError, match="another step name"):
        operate.resolve_step(step.job_id, "charge", happened=happened)

    assert Step.objects.get().outcome == step.outcome


def test_step_in_flight_cannot_be_resolved(store):
    """Who is at it knows more than any person."""
    JobFactory()
    job = claim_one(store)
    StepFactory(job_id=job.id, state="begun", outcome="", lease_id=job.lease_id)
    with pytest.raises(StepInFlightError):
        operate.resolve_step(job.id, "charge", happened=False)

    assert Step.objects.exists()


@pytest.mark.parametrize(("step", "tenant"), [("refund", None), ("charge", "beta")])
def test_step_that_is_not_there_is_said_not_to_be(step, tenant):
    """Another tenant's is not there either."""
    found = StepFactory(tenant="acme", unknown=True)
    with pytest.raises(StepNotFoundError, match=f"no step '{step}'"):
        operate.resolve_step(found.job_id, step, happened=True, tenant=tenant)


@pytest.mark.parametrize(
    ("given", "error"), [({"outcome": object()}, PayloadError), ({"happened": False, "outcome": 1}, InvalidStepError)]
)
def test_outcome_that_makes_no_sense_changes_nothing(given, error):
    """It is refused by name."""
    step = StepFactory(unknown=True)
    with pytest.raises(error):
        operate.resolve_step(step.job_id, "charge", **{"happened": True} | given)

    assert Step.objects.get().state == "unknown"
