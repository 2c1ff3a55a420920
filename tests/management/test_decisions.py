"""``workqueue requeue``, ``acknowledge``, ``discard`` and ``dead --groups``: decisions about what died, and by whom."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from itertools import pairwise

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command

from django_workqueue.domain.ids import new_id
from django_workqueue.exceptions import InvalidJobError
from django_workqueue.lifecycle import dead_groups, operate
from django_workqueue.models import DeadLetter, Job, Pause, Step
from tests.factories import DeadLetterFactory, JobFactory, PauseFactory, StepFactory, ago

from .calling import call, failing, refused, report

pytestmark = pytest.mark.django_db

ADD = "tests.samples.add"


@pytest.fixture
def vera():
    """Return a person whom the site knows."""
    return User.objects.create_user("vera")


# -- requeue -----------------------------------------------------------------------------------------------------------


def test_requeue_is_spread_evenly_over_a_span():
    """A vendor that has just come back is not met by all of them at once; the oldest is first."""
    letters = [DeadLetterFactory(died_at=ago(hours=hours)) for hours in (4, 3, 2, 1)]

    done = report("requeue", "--all", "--spread=1h")

    assert done["requeued"] == [str(letter.pk) for letter in letters]
    due = [Job.objects.get(pk=letter.pk).ready_at for letter in letters]
    # Each is requeued a moment later than the one before it.
    assert all(abs(later - early - timedelta(minutes=15)) < timedelta(minutes=1) for early, later in pairwise(due))
    assert [Job.objects.get(pk=letter.pk).state for letter in letters] == ["ready", *["scheduled"] * 3]


def test_requeue_leads_to_another_queue():
    """Where those that are left to be done do not stand in the way of new work."""
    letter = DeadLetterFactory(queue="default")

    report("requeue", str(letter.pk), "--to-queue=slow")

    assert Job.objects.get().queue == "slow"


def test_requeue_of_one_takes_other_arguments():
    """Those that are not given stay as they were."""
    letter = DeadLetterFactory(task=ADD, args="[1, 2]", kwargs="{}")
    report("requeue", str(letter.pk), "--args=[3, 4]", "--attempts=2", "--to-queue=slow")

    job = Job.objects.get()
    assert (job.args, job.kwargs, job.queue) == ("[3,4]", "{}", "slow")
    assert job.max_attempts - job.attempts == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--args=[1]"], "tests.samples.add"),
        (["--args=[1, 2]", "--kwargs={"], "is not JSON"),
        (["--args={}"], "is not a list in JSON"),
        (["--to-queue="], "queue"),
        (["--spread=soon"], "is not a duration"),
        (["--note=\x00"], "NUL"),
        (["--by=" + "x" * 200], "by"),
    ],
)
@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_requeue_that_cannot_work_is_refused_by_name(words, complaint, dry_run):
    """Before anything is done, and by a dry run as well."""
    letter = DeadLetterFactory(task=ADD, args="[1, 2]", kwargs="{}")

    assert complaint in refused("requeue", str(letter.pk), *words, *dry_run)
    assert DeadLetter.objects.exists()


def test_other_arguments_are_for_one_job():
    """Nobody means to give a thousand jobs the same."""
    ids = [str(letter.pk) for letter in DeadLetterFactory.create_batch(2, task=ADD)]

    assert "for one job" in refused("requeue", *ids, "--args=[1, 2]")
    assert "for one job" in refused("requeue", "--all", "--args=[1, 2]")
    assert DeadLetter.objects.count() == 2


def test_other_arguments_of_a_job_that_clashes_are_refused():
    """It is named, and the exit code is 1."""
    letter = DeadLetterFactory(task=ADD, args="[1, 2]", kwargs="{}", dedupe_key="order-17")
    JobFactory(dedupe_key="order-17")

    assert failing("requeue", str(letter.pk), "--args=[3, 4]")["refused"][0]["id"] == str(letter.pk)


def test_dry_run_of_a_requeue_tells_what_will_happen():
    """Which clash, and how the others come back; then just that happens."""
    JobFactory(dedupe_key="order-17")
    letters = {
        "clash": DeadLetterFactory(dedupe_key="order-17", died_at=ago(hours=4)),
        "first": DeadLetterFactory(dedupe_key="order-18", died_at=ago(hours=3)),
        "second": DeadLetterFactory(dedupe_key="order-18", died_at=ago(hours=2)),
        "expired": DeadLetterFactory(dedupe_key="order-17", dedupe_expires_at=ago(hours=1)),
        "other tenant": DeadLetterFactory(dedupe_key="order-17", tenant="acme", died_at=ago(minutes=2)),
    }
    words = ("requeue", "--all", "--spread=10m", "--attempts=2")

    foreseen = failing(*words, "--dry-run")
    assert DeadLetter.objects.count() == 5
    done = failing(*words)

    assert {each["id"] for each in foreseen["refused"]} == {str(letters[name].pk) for name in ("clash", "second")}
    assert foreseen["how"] == ["with 2 further attempts", "spread over 10m"]
    assert foreseen | {"dry_run": False} == done


def test_dry_run_sees_that_another_queue_has_the_key():
    """A key is one of its queue."""
    letter = DeadLetterFactory(dedupe_key="order-17")
    JobFactory(dedupe_key="order-17", queue="slow")

    assert report("requeue", str(letter.pk), "--dry-run")["requeued"] == [str(letter.pk)]
    assert failing("requeue", str(letter.pk), "--to-queue=slow", "--dry-run")["requeued"] == []
    assert [each.job_id for each in operate.irrecoverable([letter.pk], queue="slow")] == [letter.pk]


def test_people_are_told_how_they_come_back():
    """In sentences, beside how many."""
    DeadLetterFactory.create_batch(2)

    text = call("requeue", "--all", "--spread=10m", "--to-queue=Slow", "--dry-run")

    assert text.startswith("To be requeued: 2\n")
    assert text.endswith("Into the queue 'Slow'.\nSpread over 10m.\n")


# -- groups ------------------------------------------------------------------------------------------------------------


def test_dead_letters_are_told_by_cause():
    """What died of what, how often, since when; those that grew last come first."""
    old = DeadLetterFactory.create_batch(2, last_error="CardError: card 17 was refused", died_at=ago(hours=3))
    new = DeadLetterFactory(died_at=ago(minutes=5))

    found = report("dead", "--groups")

    assert [(row["error"], row["count"]) for row in found["groups"]] == [
        ("ValueError: the printer is on fire", 1),
        ("CardError: card # was refused", 2),
    ]
    assert [row["group"] for row in found["groups"]] == [new.fingerprint, old[0].fingerprint]
    assert (found["groups"][0]["latest"], found["next"]) == (str(new.pk), None)
    assert call("dead", "--groups").splitlines()[:3] == [
        f"{new.fingerprint}  1  last 5m ago, first 5m ago",
        "    shop.tasks.send_receipt",
        "    ValueError: the printer is on fire",
    ]


def test_groups_come_page_by_page_and_are_counted_up_to_a_cap(monkeypatch):
    """However many there are; each line fits on a narrow screen."""
    monkeypatch.setattr(dead_groups, "COUNTED", 2)
    monkeypatch.setattr("django_workqueue.management.subcommands.dead.COUNTED", 2)
    for word in ("paper", "ink", "power"):
        DeadLetterFactory.create_batch(3, last_error=f"ValueError: no {word} {'and nothing else ' * 9}")

    pages = [report("dead", "--groups", "--limit=2", f"--after={number}") for number in (0, 1)]

    assert [(len(page["groups"]), page["next"]) for page in pages] == [(2, "1"), (1, None)]
    assert len({row["group"] for page in pages for row in page["groups"]}) == 3
    text = call("dead", "--groups", "--limit=2")
    assert "  2+  last " in text
    assert text.endswith("There may be more: --groups --after=1\n")
    assert max(map(len, text.splitlines())) <= 80
    assert call("dead", "--groups", "--after=7") == "There is no dead letter.\n"


@pytest.mark.parametrize("words", [["--queue=mail"], ["--after=soon"], ["--after=-1"]])
def test_groups_are_of_all_dead_letters(words):
    """A filter that is passed over would be worse than none."""
    assert refused("dead", "--groups", *words)


@pytest.mark.parametrize(
    ("subcommand", "word"), [("requeue", "requeued"), ("discard", "discarded"), ("acknowledge", "acknowledged")]
)
def test_decision_is_about_a_whole_group(subcommand, word):
    """And about nothing else; with another filter, about a part of it."""
    meant = DeadLetterFactory.create_batch(2, last_error="CardError: card 17 was refused")
    DeadLetterFactory(last_error="CardError: card 18 was refused", queue="mail")
    other = DeadLetterFactory()
    group = f"--group={meant[0].fingerprint}"

    assert len(report("dead", group)["jobs"]) == 3
    done = report(subcommand, group, "--queue=default")

    assert set(done[word]) == {str(letter.pk) for letter in meant}
    assert DeadLetter.objects.filter(pk=other.pk, acknowledged_at=None).exists()


def test_group_is_found_behind_the_window_of_the_others(monkeypatch):
    """The window of a filter lies in the group: what died of something else since does not hide it."""
    monkeypatch.setattr("django_workqueue.lifecycle.listing.WINDOW", 2)
    old = DeadLetterFactory(last_error="CardError: refused", died_at=ago(days=3))
    DeadLetterFactory.create_batch(5)

    found = report("dead", f"--group={old.fingerprint}", "--queue=default")

    assert ([row["id"] for row in found["jobs"]], found["next"]) == ([str(old.pk)], None)


def test_what_is_no_group_is_refused():
    """A slip of the hand is not an empty group."""
    assert "'17' is not a group of dead letters" in refused("requeue", "--group=17")


# -- acknowledge -------------------------------------------------------------------------------------------------------


def test_acknowledged_letters_show_who_has_seen_them_and_why(monkeypatch):
    """The user in the system, unless somebody else is named."""
    monkeypatch.setattr("getpass.getuser", lambda: "deploy")
    mine, hers, unknown = DeadLetterFactory(), DeadLetterFactory(), new_id()

    report("acknowledge", str(mine.pk))
    done = failing("acknowledge", str(hers.pk), str(unknown), "--by=vera", "--note=the vendor knows")

    assert done["acknowledged"] == [str(hers.pk)]
    assert [each["id"] for each in done["refused"]] == [str(unknown)]
    seen = dict(DeadLetter.objects.values_list("pk", "acknowledged_by"))
    assert seen == {mine.pk: "deploy", hers.pk: "vera"}
    assert DeadLetter.objects.get(pk=hers.pk).note == "the vendor knows"


# -- who did it --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subcommand", "flag", "text"),
    [
        ("requeue", 2, "Requeued. Spread over 10m. Note: card reader is back."),
        ("acknowledge", 2, "Acknowledged. Note: card reader is back."),
        ("discard", 3, "Discarded. Note: card reader is back."),
    ],
)
def test_decision_stands_in_the_log_of_changes(vera, caplog, subcommand, flag, text):
    """Where the admin shows it: who, what, how and why, one entry for each letter."""
    letters = DeadLetterFactory.create_batch(2)
    how = ["--spread=10m"] if subcommand == "requeue" else []

    with caplog.at_level(logging.INFO, logger="django_workqueue"):
        report(subcommand, "--all", "--by=vera", "--note=card reader is back", *how)

    entries = LogEntry.objects.order_by("object_id")
    assert {(each.user, each.action_flag, each.change_message) for each in entries} == {(vera, flag, text)}
    assert [each.object_id for each in entries] == sorted(str(letter.pk) for letter in letters)
    assert [each.by for each in caplog.records if hasattr(each, "by")] == ["vera", "vera"]


def test_cancel_stands_in_the_log_of_changes(vera):
    """As when it is done in the admin; a refusal does not."""
    job = JobFactory()

    failing("cancel", str(job.pk), str(new_id()), "--by=vera")

    assert [each.change_message for each in LogEntry.objects.all()] == ["Cancelled."]


def test_who_is_unknown_to_the_site_stands_in_the_log_alone(caplog):
    """The admin's entries are of users of the site."""
    letter = DeadLetterFactory()

    with caplog.at_level(logging.INFO, logger="django_workqueue"):
        report("discard", str(letter.pk), "--by=cron", "--note=too old")

    assert not LogEntry.objects.exists()
    assert "Discarded. Note: too old. By cron." in caplog.text


def test_nothing_is_noted_of_a_dry_run(vera):
    """Nothing was done."""
    DeadLetterFactory()
    report("discard", "--all", "--by=vera", "--dry-run")

    assert not LogEntry.objects.exists()


def test_pauses_stand_in_the_log_of_changes(vera):
    """Beginning and end; what changed nothing does not."""
    for _ in range(2):
        report("pause", "--queue=mail", "--by=vera")
    assert Pause.objects.get().paused_by == "vera"
    for _ in range(2):
        report("resume", "--queue=mail", "--by=vera")

    assert [each.change_message for each in LogEntry.objects.order_by("pk")] == ["Paused.", "Resumed."]


def test_interrupted_decision_says_how_far_it_came(monkeypatch, capsys):
    """What was done stays done, what was being done is taken back, and the exit code is 1."""
    letters = DeadLetterFactory.create_batch(3)
    real = operate.discard

    def discard(ids, **given):
        done = real(ids, **given)
        if DeadLetter.objects.count() == 1:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(operate, "discard", discard)
    with pytest.raises(SystemExit) as caught:
        call_command("workqueue", "discard", "--all", "--format=json")

    told = json.loads(capsys.readouterr().out)
    assert (caught.value.code, len(told["discarded"]), told["interrupted"]) == (1, 1, True)
    assert DeadLetter.objects.count() == len(letters) - 1


# -- resolve-step ------------------------------------------------------------------------------------------------------


def test_unknown_step_is_resolved_by_who_found_out(vera):
    """With what it returned; who says so is noted."""
    step = StepFactory(unknown=True)
    which = (str(step.job_id), "charge")
    words = ("--happened", '--outcome={"receipt": 17}', "--by=vera", "--note=the bank says so")

    told = report("resolve-step", *which, *words, "--dry-run")
    assert (told["happened"], told["dry_run"], Step.objects.get().state) == (True, True, "unknown")
    report("resolve-step", *which, *words)

    step.refresh_from_db()
    assert (step.state, step.outcome) == ("done", '{"receipt":17}')
    assert LogEntry.objects.get().change_message == "Resolved: it happened. Note: the bank says so."
    assert "is on record as done" in refused("resolve-step", *which, "--did-not-happen")


def test_step_that_did_not_happen_is_done_anew():
    """It is forgotten."""
    step = StepFactory(unknown=True)

    text = call("resolve-step", str(step.job_id), "charge", "--did-not-happen")

    assert text == f"Step 'charge' of job {step.job_id} is on record: it did not happen.\n"
    assert not Step.objects.exists()


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["charge"], "one of the arguments"),
        (["charge", "--did-not-happen", "--outcome=1"], "--outcome is for a step that happened"),
        (["charge", "--happened", "--outcome={"], "is not JSON"),
        (["ship", "--happened"], "ship"),
        (["charge", "--happened", "--tenant=acme"], "charge"),
    ],
)
def test_step_that_cannot_be_resolved_is_refused_by_name(words, complaint, dry_run):
    """Nothing is changed."""
    step = StepFactory(unknown=True)

    assert complaint in refused("resolve-step", str(step.job_id), *words, *dry_run)
    assert Step.objects.get().state == "unknown"


# -- what they call ----------------------------------------------------------------------------------------------------


def test_amended_letter_keeps_what_is_not_given():
    """Unless that is no JSON, which a person has to mend."""
    letter = DeadLetterFactory(task=ADD, args="[1, 2]", kwargs="{}")
    broken = DeadLetterFactory(task=ADD, args="no JSON", kwargs="{}")

    operate.amend(letter.pk, args=[3, 4], delay=timedelta(hours=1))

    assert (Job.objects.get().args, Job.objects.get().state) == ("[3,4]", "scheduled")
    with pytest.raises(InvalidJobError, match="Give both args and kwargs"):
        operate.amend(broken.pk, kwargs={})


def test_dry_run_of_a_pause_notes_nothing(vera):
    """It tells whether something would change."""
    PauseFactory(name="mail")

    assert not report("pause", "--queue=mail", "--by=vera", "--dry-run")["changed"]
    assert report("resume", "--queue=mail", "--by=vera", "--dry-run")["changed"]
    assert not LogEntry.objects.exists()
