"""``manage.py workqueue``: each subcommand does one thing to the queue and says what became of it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.db import OperationalError, connection

from django_workqueue.domain.states import DeathReason
from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, FinishedJob, QueueMinute, Step, Worker
from django_workqueue.worker.process import EXIT_USAGE
from tests.factories import (
    DeadLetterFactory,
    FinishedJobFactory,
    JobFactory,
    QueueFactory,
    QueueMinuteFactory,
    StepFactory,
    WorkerFactory,
    ago,
)
from tests.filling import fill_finished

from .calling import call, report

OLD_ROWS = 30_000


@contextmanager
def counted():
    """Collect how many rows each statement touches."""
    rows = []

    def execute(run, sql, params, many, context):
        try:
            return run(sql, params, many, context)
        finally:
            rows.append(context["cursor"].rowcount)

    with connection.execute_wrapper(execute):
        yield rows


@pytest.fixture
def old_rows(db, settings):
    """Make rows of each kind whose time is over, and one of each whose time is not."""
    settings.WORKQUEUE = {"DEAD_RETENTION": timedelta(days=30)}
    FinishedJobFactory.create_batch(5, expires_at=ago(minutes=1))
    DeadLetterFactory.create_batch(3, died_at=ago(days=31))
    WorkerFactory(seen_at=ago(days=2))
    QueueMinuteFactory.create_batch(2, minute=ago(days=40))
    QueueMinuteFactory(minute=ago(days=2))
    StepFactory.create_batch(3, expires_at=ago(minutes=1))
    for factory in (FinishedJobFactory, DeadLetterFactory, WorkerFactory, QueueMinuteFactory, StepFactory):
        factory()


def left() -> list[int]:
    """Return how many rows of each kind there are."""
    return [model.objects.count() for model in (FinishedJob, DeadLetter, Worker, QueueMinute, Step)]


# -- prune -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", ["1", "2", "1000"])
def test_prune_deletes_all_that_is_over_and_says_how_much(old_rows, batch):
    """Whatever the size of a batch; what is still kept stays."""
    done = report("prune", "--batch-size", batch)

    assert done == {
        "finished": 5,
        "dead": 3,
        "workers": 1,
        "minutes": 2,
        "workflows": 0,
        "steps": 3,
        "folded": 1,
        "total": 15,
        "dry_run": False,
        "capped": [],
    }
    assert left() == [1, 1, 1, 2, 1]


def test_prune_tells_people_in_words(old_rows):
    """A line for each kind, and the sum."""
    lines = [line.split(maxsplit=1) for line in call("prune").splitlines()]

    assert lines == [
        ["Deleted:"],
        ["5", "finished jobs"],
        ["3", "dead letters"],
        ["1", "workers not seen for a day"],
        ["2", "minutes of statistics"],
        ["0", "rows of workflows"],
        ["3", "steps of jobs that are over"],
        ["1", "minutes of statistics, added to their hours"],
        ["15", "in all"],
    ]


def test_dry_run_deletes_nothing(old_rows):
    """It counts what would go."""
    before = left()

    found = report("prune", "--dry-run")

    assert (found["finished"], found["dead"], found["minutes"], found["folded"]) == (5, 3, 2, 1)
    assert found["dry_run"]
    assert left() == before
    assert call("prune", "--dry-run").startswith("To be deleted:")


def test_dry_run_stops_counting_at_its_cap_and_says_so(old_rows, monkeypatch):
    """A count over a long neglected table would be as slow as the deletion."""
    monkeypatch.setattr(operate, "COUNT_CAP", 4)
    monkeypatch.setattr("django_workqueue.management.subcommands.prune.COUNT_CAP", 4)

    assert report("prune", "--dry-run")["capped"] == ["finished"]
    text = call("prune", "--dry-run")
    assert "4 finished jobs or more" in text
    assert "3 dead letters\n" in text
    assert "14 in all or more" in text


def test_dead_letters_are_kept_for_ever_by_default(db):
    """A person decides about them."""
    DeadLetterFactory(died_at=ago(days=4000), reason=DeathReason.EXHAUSTED)

    assert report("prune")["total"] == 0


def test_prune_ends_while_rows_keep_falling_due(old_rows, monkeypatch):
    """On a busy system each round finds a row or two that were not there before; a cron job is to end all the same."""
    real, rounds = operate.prune, []

    def prune_beside_a_worker(**given):
        FinishedJobFactory(expires_at=ago(minutes=1))
        rounds.append(given)
        assert len(rounds) < 10
        return real(**given)

    monkeypatch.setattr(operate, "prune", prune_beside_a_worker)

    assert report("prune", "--batch-size=3")["finished"] == 8


def test_long_neglected_table_is_pruned_in_short_statements(db):
    """One delete over all would run into a statement timeout (bensheldon/good_job#933, que-rb/que#299)."""
    fill_finished(OLD_ROWS, over=True)

    with counted() as rows:
        assert report("prune")["finished"] == OLD_ROWS

    assert not FinishedJob.objects.exists()
    assert max(rows) == 1000


# -- stats -------------------------------------------------------------------------------------------------------------


def test_stats_report_every_field_of_every_queue(db):
    """A program reads the names of the reference."""
    JobFactory.create_batch(2)
    QueueFactory(name="mail", paused=True)

    default, mail = report("stats")

    assert (default["queue"], default["ready"], default["depth"], default["unserved"]) == ("default", 2, 2, True)
    assert default["oldest_age_seconds"] == pytest.approx(120, abs=20)
    assert (mail["queue"], mail["paused"], mail["capped"]) == ("mail", True, [])


def test_stats_tell_people_in_a_table(db, monkeypatch):
    """Counts that stopped at their cap have a plus; what needs somebody is at the line's end."""
    monkeypatch.setattr("django_workqueue.store.watch.COUNT_CAP", 2)
    JobFactory.create_batch(3, ready_at=ago(seconds=120))
    QueueFactory(name="mail", paused=True)

    head, default, mail = (line.split() for line in call("stats").splitlines())

    assert head == [
        "queue", "ready", "scheduled", "blocked", "parked", "leased", "dead", "oldest", "workers"
    ]  # fmt: skip
    assert default == ["default", "2+", *"00000", default[7], "0", "unserved"]
    assert default[7].startswith("12")
    assert [row["queue"] for row in report("stats", "--queue=m*")] == ["mail"]
    assert mail == ["mail", *"000000", "0s", "0", "paused"]


# -- pause, resume, pauses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["queue", "tenant", "task"])
def test_what_is_named_is_paused_and_resumed(db, kind):
    """The report says whether that changed anything."""
    words = ("pause", f"--{kind}", "shop.mail", "--by", "olga")

    assert call(*words) == f"{kind} 'shop.mail' is paused.\n"
    assert call(*words) == f"{kind} 'shop.mail' was paused already.\n"
    assert call("pauses").startswith(f"{kind.ljust(6)}  'shop.mail' by olga since ")
    report = json.loads(call("resume", f"--{kind}", "shop.mail", "--format", "json"))
    assert report == {"kind": kind, "name": "shop.mail", "changed": True, "dry_run": False}
    assert call("resume", f"--{kind}", "shop.mail") == f"{kind} 'shop.mail' was not paused.\n"
    assert call("pauses") == "Nothing is paused.\n"


def test_dry_run_of_a_pause_tells_what_would_change(db):
    """And changes nothing."""
    assert call("pause", "--queue=mail", "--dry-run") == "queue 'mail' would be paused.\n"
    assert call("pauses") == "Nothing is paused.\n"
    call("pause", "--queue=mail")
    assert call("pause", "--queue=mail", "--dry-run") == "queue 'mail' was paused already.\n"
    assert call("resume", "--queue=mail", "--dry-run") == "queue 'mail' would be resumed.\n"
    assert report("pauses")[0]["name"] == "mail"


def test_pause_is_by_the_user_in_the_system(db, monkeypatch):
    """A container may know none."""
    monkeypatch.setattr("getpass.getuser", lambda: "vera")
    call("pause", "--queue", "mail")
    monkeypatch.setattr("getpass.getuser", Mock(side_effect=KeyError))
    call("pause", "--queue", "reports")

    pauses = json.loads(call("pauses", "--format", "json"))
    assert [(each["name"], each["by"]) for each in pauses] == [("mail", "vera"), ("reports", "manage.py")]


def test_pause_of_what_cannot_be_is_refused(db):
    """With the code of a fault of usage, and before anything is written."""
    with pytest.raises(CommandError, match="queue has 101 characters") as refused:
        call("pause", "--queue", "x" * 101)

    assert refused.value.returncode == 2
    assert call("pauses") == "Nothing is paused.\n"


# -- usage -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["0", "-1", "10001", "many", "1.5", "²"])
def test_batch_that_cannot_work_is_refused(size):
    """The value is quoted, with what may stand there."""
    with pytest.raises(CommandError, match="is not a whole number from 1 to 10000"):
        call("prune", f"--batch-size={size}")


@pytest.mark.parametrize("subcommand", ["prune", "stats"])
def test_unknown_database_is_a_fault_of_usage(subcommand):
    """Told in a sentence, with its own exit code."""
    with pytest.raises(CommandError, match="nowhere") as caught:
        call(subcommand, "--database=nowhere")

    assert caught.value.returncode == EXIT_USAGE


def test_settings_that_cannot_work_are_a_fault_of_usage(settings):
    """Nothing is deleted by a retention that nobody meant."""
    settings.WORKQUEUE = {"RETENTION": "soon"}

    with pytest.raises(SystemCheckError) as caught:
        call_command("workqueue", "prune", skip_checks=False)

    assert caught.value.returncode == EXIT_USAGE


@pytest.mark.django_db
@pytest.mark.parametrize("subcommand", ["prune", "stats"])
def test_database_that_is_away_is_told_in_a_sentence(subcommand, monkeypatch):
    """A cron job's mail is to be read by people."""

    def away(**_given):
        raise OperationalError("connection refused")

    monkeypatch.setattr(operate, {"prune": "prune_all"}.get(subcommand, subcommand), away)

    with pytest.raises(CommandError, match="connection refused") as caught:
        call(subcommand)

    assert caught.value.returncode == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["prune", "--format=json"], 0, '"total": 0'),
        ([], EXIT_USAGE, "subcommand"),
        (["prune", "--batch-size=0"], EXIT_USAGE, "'0' is not a whole number"),
        (["prunes"], EXIT_USAGE, "'prunes'"),
    ],
)
def test_exit_codes_are_those_of_the_worker(process_environment, arguments, code, words):
    """From the shell, as a cron job has it."""
    done = subprocess.run(
        [sys.executable, "-m", "django", "workqueue", *arguments],
        env=process_environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == code
    assert words in (done.stderr if code else done.stdout)


@pytest.mark.django_db(transaction=True)
def test_reader_that_goes_away_is_no_error(process_environment):
    """``workqueue jobs | head`` ends quietly, with the code of what was done."""
    JobFactory.create_batch(2000)
    writer = subprocess.Popen(
        [sys.executable, "-m", "django", "workqueue", "jobs", "--limit=2000"],
        env=process_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with writer:
        writer.stdout.readline()
        writer.stdout.close()
        errors = writer.stderr.read()

    assert (writer.returncode, errors) == (0, b"")
