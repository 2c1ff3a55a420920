"""``workqueue jobs``, ``job``, ``dead`` and ``workers``: looking, without values and without a load."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_workqueue.domain.ids import new_id
from django_workqueue.lifecycle import listing
from tests.factories import (
    DeadLetterFactory,
    FailureFactory,
    FinishedJobFactory,
    JobFactory,
    LeaseFactory,
    ScheduleFactory,
    WorkerFactory,
    ago,
)

from .calling import call, failing, refused, report

pytestmark = pytest.mark.django_db

SECRET = "4111-1111"


def ids(found) -> list[str]:
    """Return the ids in a report, in order."""
    return [row["id"] for row in found["jobs"]]


def newest_first(rows) -> list[str]:
    """Return the ids of rows in the order of a list."""
    return [str(row.pk) for row in sorted(rows, key=lambda row: row.pk, reverse=True)]


# -- jobs --------------------------------------------------------------------------------------------------------------


def test_live_jobs_are_listed_newest_first():
    """Finished jobs and dead letters are not among them."""
    rows = [JobFactory(), JobFactory(scheduled=True), JobFactory(leased=True)]
    FinishedJobFactory()
    DeadLetterFactory()

    found = report("jobs")

    assert ids(found) == newest_first(rows)
    assert {row["state"] for row in found["jobs"]} == {"ready", "scheduled", "leased"}
    assert found["next"] is None


@pytest.mark.parametrize(
    ("option", "made"),
    [
        ("--queue=mail", {"queue": "mail"}),
        ("--tenant=acme", {"tenant": "acme"}),
        ("--task=shop.tasks.refund", {"task": "shop.tasks.refund"}),
        ("--state=scheduled", {"scheduled": True}),
        ("--state=leased", {"leased": True}),
    ],
)
def test_jobs_are_chosen_by_a_filter(option, made):
    """Each leaves out what it does not name."""
    JobFactory.create_batch(2)
    wanted = JobFactory(**made)

    assert ids(report("jobs", option)) == [str(wanted.pk)]


def test_jobs_are_chosen_by_the_class_of_their_last_error():
    """In full or by its last part; an earlier error does not count."""
    failed, healed = JobFactory(), JobFactory()
    FailureFactory(job_id=failed.pk, error_class="shop.errors.CardError")
    FailureFactory(job_id=healed.pk, error_class="shop.errors.CardError")
    FailureFactory(job_id=healed.pk, error_class="builtins.OSError")

    assert ids(report("jobs", "--error=CardError")) == [str(failed.pk)]
    assert ids(report("jobs", "--error=shop.errors.CardError")) == [str(failed.pk)]
    assert ids(report("jobs", "--error=rror")) == []


@pytest.mark.parametrize("outcome", ["succeeded", "cancelled"])
def test_finished_jobs_are_listed_by_their_outcome(outcome):
    """They are kept for a while, in a table of their own."""
    rows = {"succeeded": FinishedJobFactory(), "cancelled": FinishedJobFactory(cancelled=True)}

    assert ids(report("jobs", f"--state={outcome}")) == [str(rows[outcome].pk)]


def test_list_goes_on_where_it_ended():
    """Page by page, each job once, whatever was added in front meanwhile."""
    rows = JobFactory.create_batch(5)

    first = report("jobs", "--limit=2")
    JobFactory()
    second = report("jobs", "--limit=2", f"--after={first['next']}")
    third = report("jobs", "--limit=2", f"--after={second['next']}")

    assert ids(first) + ids(second) + ids(third) == newest_first(rows)
    assert third["next"] is None


def test_filter_looks_through_a_window_and_says_so(monkeypatch):
    """A condition without an index must not scan the table; an empty page is not the last one."""
    monkeypatch.setattr(listing, "WINDOW", 3)
    wanted = JobFactory(queue="mail")
    JobFactory.create_batch(4)

    first = report("jobs", "--queue=mail")
    second = report("jobs", "--queue=mail", f"--after={first['next']}")

    assert ids(first) == []
    assert first["next"] is not None
    assert ids(second) == [str(wanted.pk)]
    assert "There may be more: --after=" in call("jobs", "--queue=mail")


@pytest.mark.parametrize("subcommand", ["jobs", "dead"])
def test_number_of_statements_does_not_grow_with_the_rows(subcommand, django_assert_max_num_queries):
    """The list of many is as cheap as the list of few."""
    JobFactory.create_batch(30)
    DeadLetterFactory.create_batch(30, failures=2)

    # On PostgreSQL two savepoints and the pinning of plans are among them.
    with django_assert_max_num_queries(8):
        report(subcommand, "--queue=default", "--limit=30")


def test_place_that_no_list_gave_is_refused():
    """It is quoted."""
    assert "'soon' is no place" in refused("jobs", "--after=soon")
    assert "'soon' is no place" in refused("dead", "--after=soon")


def test_list_tells_names_of_arguments_and_no_values():
    """What a job was given may be private; what it is called is not."""
    JobFactory(task="tests.samples.add", args="[1]", kwargs=json.dumps({"right": SECRET}))
    JobFactory(task="gone.tasks.pay", args=json.dumps([SECRET]), kwargs="{}")
    JobFactory(task="gone.tasks.pay", args="no JSON")

    text = call("jobs")

    assert SECRET not in text + call("jobs", "--format=json")
    assert "gone.tasks.pay(args[0])" in text
    assert "gone.tasks.pay()" in text
    assert "tests.samples.add(left, right)" in text


def test_lists_fit_on_a_narrow_screen():
    """80 columns, with names as people give them."""
    job = JobFactory(leased=True, tenant="acme-books", queue="notifications", cancel_requested_at=timezone.now())
    FailureFactory(job_id=job.pk, error_class="shop.errors.CardError")
    DeadLetterFactory(failures=1)
    WorkerFactory(name="shop-7c9d.1", memory_bytes=120 * 1024**2)
    JobFactory.create_batch(12, queue="notifications", scheduled=True)

    lines = [line for words in ("jobs", "dead", "workers", "stats", "health") for line in call(words).splitlines()]

    assert not [line for line in lines if len(line) > 80]
    assert "to be cancelled" in call("jobs", "--state=leased")


# -- dead --------------------------------------------------------------------------------------------------------------


def test_dead_letters_are_listed_by_their_death():
    """An old job that died a minute ago is news."""
    early = DeadLetterFactory(died_at=ago(hours=2))
    late = DeadLetterFactory(id=new_id(), died_at=ago(minutes=1), failures=2)
    middle = DeadLetterFactory(died_at=ago(hours=1), acknowledged=True)

    first = report("dead", "--limit=2")
    second = report("dead", f"--after={first['next']}")

    assert ids(first) + ids(second) == [str(row.pk) for row in (late, middle, early)]
    assert first["jobs"][0] | {"error": "builtins.ValueError", "reason": "exhausted"} == first["jobs"][0]
    assert [row["acknowledged_by"] for row in first["jobs"]] == [None, "olga"]
    assert "acknowledged" in call("dead")


def test_lists_without_rows_say_so():
    """Silence could be a fault."""
    assert call("jobs") == "There is no such job.\n"
    assert call("dead") == "There is no such dead letter.\n"
    assert call("workers") == "There is no such worker.\n"


# -- job ---------------------------------------------------------------------------------------------------------------


def test_one_job_is_found_wherever_it_is():
    """Live, finished or dead."""
    rows = {"ready": JobFactory(), "leased": JobFactory(leased=True), "succeeded": FinishedJobFactory()}
    rows["dead"] = DeadLetterFactory()

    for state, row in rows.items():
        assert report("job", str(row.pk))["state"] == state


def test_one_job_is_shown_with_its_failures_and_no_values():
    """Values are shown to whoever asks for them."""
    letter = DeadLetterFactory(
        args=json.dumps([SECRET]), metadata='{"correlation_id":"req-7"}', last_error=f"ValueError: {SECRET}"
    )
    FailureFactory.create(job_id=letter.pk, attempt=1, message=SECRET, traceback=f"line 1\n{SECRET}")

    plain, whole = report("job", str(letter.pk)), report("job", str(letter.pk), "--values")

    assert SECRET not in json.dumps(plain) + call("job", str(letter.pk))
    assert plain["correlation_id"] == "req-7"
    assert [each["error"] for each in plain["failures"]] == ["builtins.ValueError"]
    assert (whole["args"], whole["last_error"]) == ([SECRET], f"ValueError: {SECRET}")
    assert whole["failures"][0]["message"] == SECRET
    assert "attempt 1: error builtins.ValueError" in call("job", str(letter.pk))
    assert f"    {SECRET}" in call("job", str(letter.pk), "--values")


def test_stored_text_does_not_steer_the_terminal():
    """An error's message may come from a stranger."""
    letter = DeadLetterFactory(last_error="\x1b[2Jgone")
    FailureFactory(job_id=letter.pk, message="\x1b]0;title\x07")

    text = call("job", str(letter.pk), "--values")

    assert "\\x1b[2Jgone" in text
    assert all(line.isprintable() for line in text.splitlines())


def test_result_and_undecodable_text_are_shown_as_they_are():
    """A row that no worker could read must be readable here."""
    finished = FinishedJobFactory(args="no JSON", metadata="none either")

    whole = report("job", str(finished.pk), "--values")

    assert (whole["result"], whole["args"], whole["metadata"]) == ({"sent": 1}, "no JSON", "none either")


def test_progress_of_a_running_job_is_told():
    """As the task last reported it."""
    job = JobFactory(leased=True, progress='{"done":3,"total":10,"text":"mails"}')

    assert report("job", str(job.pk))["progress"] == "3 / 10 (30%) mails"


def test_only_the_latest_failures_of_a_job_are_told(monkeypatch):
    """A job may have failed thousands of times."""
    monkeypatch.setattr(listing, "MOST_FAILURES", 2)
    letter = DeadLetterFactory(failures=4)

    assert [each["attempt"] for each in report("job", str(letter.pk))["failures"]] == [3, 4]


def test_job_that_is_not_there_is_no_crash():
    """Nor is another tenant's."""
    job = JobFactory(tenant="acme")

    assert str(unknown := new_id()) in refused("job", str(unknown))
    assert str(job.pk) in refused("job", str(job.pk), "--tenant=other")
    assert "is not the id of a job" in refused("job", "17")


# -- workers -----------------------------------------------------------------------------------------------------------


def test_workers_are_listed_with_whether_they_live():
    """One that was not seen for some beats is silent."""
    WorkerFactory(id="a", queues="mail"), WorkerFactory(id="b", silent=True), WorkerFactory(id="c", stopping=True)

    found = report("workers")

    assert [(row["id"], row["alive"], row["state"]) for row in found["workers"]] == [
        ("a", True, "running"), ("b", False, "running"), ("c", True, "stopping")
    ]  # fmt: skip
    assert [row["id"] for row in report("workers", "--queue=mail")["workers"]] == ["a", "b", "c"]
    assert [row["id"] for row in report("workers", "--queue=default")["workers"]] == ["b", "c"]
    assert "silent" in call("workers")
    first = report("workers", "--limit=2")
    assert [row["id"] for row in report("workers", f"--after={first['next']}")["workers"]] == ["c"]


# -- the cost ----------------------------------------------------------------------------------------------------------


def test_looking_locks_nothing():
    """Workers must not wait for whoever looks."""
    job = JobFactory(lease=LeaseFactory(), state="leased", attempts=1)

    with CaptureQueriesContext(connection) as caught:
        for words in (("jobs", "--state=leased"), ("job", str(job.pk)), ("dead",), ("workers",)):
            report(*words)
        failing("health", "--max-age=1h", "--min-workers=1", "--queues=mail")

    statements = [query["sql"] for query in caught.captured_queries]
    assert statements
    harmless = ("SELECT", "WITH", "DECLARE", "SET LOCAL", "SAVEPOINT", "RELEASE", "ROLLBACK TO")
    assert not [sql for sql in statements if not sql.lstrip().startswith(harmless) or "FOR UPDATE" in sql]


def test_age_is_told_in_its_largest_unit():
    """As the options take it."""
    JobFactory(ready_at=timezone.now() - timedelta(hours=5))

    assert "  for 5h  " in call("jobs")


# -- on a screen -------------------------------------------------------------------------------------------------------


def test_long_names_leave_the_numbers_where_they_can_be_read():
    """A name has a line of its own and is whole, to be copied; the numbers of all queues stay below each other."""
    long = "notifications-and-reminders-of-the-northern-region"
    JobFactory.create_batch(3, queue=long, task="tests.samples.add")
    JobFactory(queue="mail", task="tests.samples.add")

    for words in ("stats", "health"):
        lines = call(words).splitlines()
        place = lines.index(long)
        assert lines[place + 1].startswith(" ")
        assert lines[place + 1].split()[0] in {"1", "3"}
        assert max(map(len, lines)) <= 80


def test_many_arguments_are_cut_and_their_task_is_not():
    """The path is what a person copies into the next command."""
    task = "a.package.with.many.parts.tasks.send_the_monthly_statement_of_account_to_the_customer"
    JobFactory(task=task, args=json.dumps(list(range(12))))

    _, path, names = call("jobs").splitlines()

    assert path == f"    {task}"
    assert names.endswith("...)")
    assert len(names) <= 80


def test_warnings_are_folded_and_their_words_are_not_broken():
    """A path or a statement is to be copied."""
    task = "a.package.with.many.parts.tasks.send_the_monthly_statement_of_account_to_the_customer"
    JobFactory(task=task)
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("workqueue", "health", "--warnings=unknown_task", stdout=out)

    lines = out.getvalue().splitlines()
    assert any(task in line for line in lines)
    assert not [line for line in lines if len(line) > 80 and task not in line]


def test_stats_of_no_queue_say_so():
    """A head without rows could be a fault."""
    assert call("stats", "--queue=nothing*") == "There is no such queue.\n"


def test_interrupted_look_ends_in_a_sentence(monkeypatch):
    """Ctrl-C is no fault of the program's that a traceback could explain."""
    monkeypatch.setattr(listing, "jobs", Mock(side_effect=KeyboardInterrupt))

    assert "Interrupted" in refused("jobs")


def test_fault_of_a_schedule_stands_below_the_table():
    """It may be a long sentence."""
    ScheduleFactory(name="nightly", fault="Task shop.tasks.gone cannot be imported: ModuleNotFoundError " * 3)

    lines = call("schedules").splitlines()

    assert lines[1].endswith("at fault")
    assert lines[2].startswith("nightly: Task shop.tasks.gone")
