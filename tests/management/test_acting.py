"""``workqueue requeue``, ``discard``, ``cancel`` and ``enqueue``: what people do, by id or by filter."""

from __future__ import annotations

import json

import pytest

from django_workqueue.domain.ids import new_id
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job
from tests.factories import DeadLetterFactory, FailureFactory, JobFactory, ago

from .calling import call, failing, refused, report

pytestmark = pytest.mark.django_db


# -- requeue and discard -----------------------------------------------------------------------------------------------


def test_dead_letter_is_requeued_by_its_id():
    """With as many further attempts as asked for."""
    letter = DeadLetterFactory(failures=5)

    done = report("requeue", str(letter.pk), "--attempts=2")

    assert (done["requeued"], done["refused"], done["dry_run"]) == ([str(letter.pk)], [], False)
    job = Job.objects.get(pk=letter.pk)
    assert job.max_attempts - job.attempts == 2
    assert not DeadLetter.objects.exists()


def test_dead_letters_are_requeued_by_what_killed_them():
    """Once the cause is mended, all of its victims and nothing else."""
    mended = DeadLetterFactory.create_batch(3)
    for letter in mended:
        FailureFactory(job_id=letter.pk, error_class="shop.errors.CardError")
    DeadLetterFactory(failures=1)

    done = report("requeue", "--error=CardError")

    assert set(done["requeued"]) == {str(letter.pk) for letter in mended}
    assert DeadLetter.objects.count() == 1


def test_oldest_are_requeued_first():
    """They have waited longest."""
    late, early = DeadLetterFactory(died_at=ago(hours=1)), DeadLetterFactory(died_at=ago(hours=2))

    assert report("requeue", "--all")["requeued"] == [str(early.pk), str(late.pk)]


def test_refusal_does_not_stop_the_others():
    """It is named, and the exit code is 1: a script sees that not all was done."""
    clash = DeadLetterFactory(dedupe_key="order-17")
    JobFactory(dedupe_key="order-17")
    letter, unknown = DeadLetterFactory(), new_id()

    done = failing("requeue", str(clash.pk), str(letter.pk), str(unknown))

    assert done["requeued"] == [str(letter.pk)]
    assert {each["id"] for each in done["refused"]} == {str(clash.pk), str(unknown)}


def test_limit_bounds_what_is_changed_and_says_so():
    """A second call goes on."""
    DeadLetterFactory.create_batch(3)

    first, second = report("discard", "--all", "--limit=2"), report("discard", "--all", "--limit=2")

    assert (len(first["discarded"]), first["more"]) == (2, True)
    assert (len(second["discarded"]), second["more"]) == (1, False)


def test_filter_reaches_behind_the_first_window(monkeypatch):
    """What is to be mended may be old."""
    monkeypatch.setattr("django_workqueue.lifecycle.listing.WINDOW", 2)
    old = DeadLetterFactory(queue="mail", died_at=ago(days=3))
    DeadLetterFactory.create_batch(5)

    assert report("requeue", "--queue=mail")["requeued"] == [str(old.pk)]


def test_discarded_dead_letters_are_gone_with_their_failures():
    """For good; an id that is not there is told."""
    letter, unknown = DeadLetterFactory(failures=2), new_id()

    done = failing("discard", str(letter.pk), str(unknown))

    assert done["discarded"] == [str(letter.pk)]
    assert [each["id"] for each in done["refused"]] == [str(unknown)]
    assert not DeadLetter.objects.exists()
    assert not Failure.objects.exists()


@pytest.mark.parametrize(("subcommand", "word"), [("requeue", "requeued"), ("discard", "discarded")])
def test_dry_run_changes_nothing_and_tells_which_are_meant(subcommand, word):
    """By filter or by id."""
    letter = DeadLetterFactory(queue="mail")
    unknown = new_id()

    assert report(subcommand, "--queue=mail", "--dry-run")[word] == [str(letter.pk)]
    told = failing(subcommand, str(letter.pk), str(unknown), "--dry-run")

    assert (told[word], [each["id"] for each in told["refused"]]) == ([str(letter.pk)], [str(unknown)])
    assert told["dry_run"]
    assert DeadLetter.objects.count() == 1
    assert call(subcommand, "--all", "--dry-run").startswith(f"To be {word}: 1\n    {letter.pk}")


@pytest.mark.parametrize("subcommand", ["requeue", "discard", "cancel"])
def test_nothing_is_done_to_everything_by_oversight(subcommand):
    """Neither an empty command line nor a filter beside an id says what is meant."""
    letter = DeadLetterFactory()

    assert "--all" in refused(subcommand)
    assert "not both" in refused(subcommand, str(letter.pk), "--queue=default")
    assert "not both" in refused(subcommand, str(letter.pk), "--all")
    assert DeadLetter.objects.count() == 1


def test_tenant_shields_the_jobs_of_others():
    """With --tenant, an id of another tenant is not found."""
    letter = DeadLetterFactory(tenant="acme")

    assert failing("requeue", str(letter.pk), "--tenant=other")["requeued"] == []
    assert report("requeue", str(letter.pk), "--tenant=acme")["requeued"] == [str(letter.pk)]


def test_long_answers_are_cut_for_people():
    """A program has them whole."""
    DeadLetterFactory.create_batch(25)

    text = call("requeue", "--all", "--dry-run")

    assert text.count("\n") == 22
    assert text.endswith("    ...\n")


# -- cancel ------------------------------------------------------------------------------------------------------------


def test_waiting_jobs_are_cancelled_and_running_ones_asked_to_end():
    """Those that are over are refused by name."""
    waiting, running, dead = JobFactory(), JobFactory(leased=True), DeadLetterFactory()

    done = failing("cancel", str(waiting.pk), str(running.pk), str(dead.pk))

    assert (done["cancelled"], done["requested"]) == ([str(waiting.pk)], [str(running.pk)])
    assert [each["id"] for each in done["refused"]] == [str(dead.pk)]
    assert FinishedJob.objects.get().pk == waiting.pk
    assert Job.objects.get().cancel_requested_at is not None
    assert Job.objects.get().cancel_force is None


def test_jobs_are_cancelled_by_filter():
    """By state too, and by force when asked for."""
    JobFactory.create_batch(2, queue="mail", scheduled=True)
    kept, running = JobFactory(queue="mail"), JobFactory(leased=True)

    assert len(report("cancel", "--queue=mail", "--state=scheduled")["cancelled"]) == 2
    report("cancel", "--state=leased", "--force")

    assert Job.objects.get(pk=running.pk).cancel_force
    assert Job.objects.filter(pk=kept.pk).exists()


def test_other_tenants_jobs_are_not_cancelled():
    """With ``--tenant``."""
    mine, other = JobFactory(tenant="acme"), JobFactory(tenant="other")

    failing("cancel", "--tenant=acme", str(mine.pk), str(other.pk))

    assert FinishedJob.objects.get().pk == mine.pk
    assert Job.objects.get().pk == other.pk


def test_what_is_no_id_is_refused_before_anything_is_done():
    """A slip of the hand cancels nothing."""
    job = JobFactory()

    assert "'17' is not the id of a job" in refused("cancel", str(job.pk), "17")
    assert Job.objects.exists()


def test_people_are_told_what_became_of_jobs():
    """Over, asked to end, or not there."""
    waits, runs = JobFactory(), JobFactory(leased=True)

    assert call("cancel", str(waits.pk), str(runs.pk)).splitlines() == [
        "Cancelled: 1", f"    {waits.pk}", "Asked to end: 1", f"    {runs.pk}"
    ]  # fmt: skip


# -- enqueue -----------------------------------------------------------------------------------------------------------


def test_job_is_enqueued_with_what_is_given():
    """As if a program had done it."""
    words = ("--args=[1]", '--kwargs={"right": 2}', "--queue=mail", "--tenant=acme", "--priority=5", "--key=a")

    done = report("enqueue", "tests.samples.add", *words)
    again = report("enqueue", "tests.samples.add", *words)

    job = Job.objects.get()
    assert (str(job.pk), job.args, job.kwargs) == (done["id"], "[1]", '{"right":2}')
    assert (job.queue, job.tenant, job.priority, job.dedupe_key) == ("mail", "acme", 5, "a")
    assert (done["duplicate"], again["duplicate"], again["id"]) == (False, True, done["id"])
    assert "was there before" in call("enqueue", "tests.samples.add", *words)


def test_job_is_enqueued_for_later():
    """After a delay, written as durations are."""
    call("enqueue", "tests.samples.add", "--args=[1, 2]", "--delay=15m")

    assert Job.objects.get().state == "scheduled"


def test_dry_run_of_an_enqueue_checks_and_stores_nothing():
    """What would be refused is refused."""
    told = report("enqueue", "tests.samples.add", "--args=[1, 2]", "--dry-run")

    assert (told["id"], told["queue"], told["dry_run"]) == (None, "default", True)
    assert "can be enqueued" in call("enqueue", "tests.samples.add", "--args=[1, 2]", "--dry-run")
    assert "priority" in refused("enqueue", "tests.samples.add", "--args=[1, 2]", "--dry-run", "--priority=500")
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["tests.samples.nothing"], "tests.samples.nothing"),
        (["tests.samples.add", "--args={}"], "is not a list in JSON"),
        (["tests.samples.add", "--kwargs=[]"], "is not an object in JSON"),
        (["tests.samples.add", "--args=[1"], "is not JSON"),
        (["tests.samples.add", "--args=[1]"], "tests.samples.add"),
        (["tests.samples.add", "--args=[1, NaN]"], "args[1]"),
        (["tests.samples.add", "--args=[1, 2]", "--tenant=\x07"], "tenant"),
        (["tests.samples.add", "--args=[1, 2]", "--database=other"], "other"),
    ],
)
def test_enqueue_that_cannot_work_is_refused_by_name(words, complaint):
    """Before anything is stored."""
    assert complaint in refused("enqueue", *words)
    assert not Job.objects.exists()


def test_report_of_an_enqueue_holds_no_values():
    """It may end in a log."""
    told = json.dumps(report("enqueue", "tests.samples.add", '--args=["4111", "1111"]'))

    assert "4111" not in told
