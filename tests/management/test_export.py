"""``workqueue export``: jobs as lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from django_workqueue.management.subcommands import export
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory

from .calling import call, refused

pytestmark = pytest.mark.django_db


def exported(*arguments: str) -> list[dict]:
    """Return what the lines say."""
    return [json.loads(line) for line in call("export", *arguments).splitlines()]


def test_jobs_are_written_one_on_a_line():
    """Newest first, with all that is stored of them; nothing else is among the lines."""
    first, second = JobFactory(args='["\\u2028\\u007f", 17]'), JobFactory(leased=True, queue="mail")
    FinishedJobFactory()

    rows = exported()

    assert [row["id"] for row in rows] == [str(second.pk), str(first.pk)]
    assert rows[1]["args"] == ["\u2028\x7f", 17]
    assert (rows[0]["state"], rows[0]["queue"]) == ("leased", "mail")
    assert call("export", "--format=json") == call("export")


@pytest.mark.parametrize("place", ["ready", "succeeded", "dead"])
def test_jobs_are_chosen_by_their_state(place):
    """Wherever jobs in that state are kept."""
    rows = {"ready": JobFactory(), "succeeded": FinishedJobFactory(), "dead": DeadLetterFactory()}

    assert [row["id"] for row in exported(f"--state={place}")] == [str(rows[place].pk)]


def test_dead_letters_of_one_cause_are_exported():
    """For whoever mends it."""
    letter = DeadLetterFactory(last_error="CardError: refused")
    DeadLetterFactory()

    assert [row["id"] for row in exported(f"--group={letter.fingerprint}")] == [str(letter.pk)]


def test_export_goes_on_where_it_ended(monkeypatch):
    """Batch by batch, each job once; what is left out is told, with the place to go on from."""
    monkeypatch.setattr(export, "BATCH", 2)
    jobs = JobFactory.create_batch(5)

    *first, told = exported("--limit=3")
    second = exported("--limit=3", f"--after={told['next']}")

    assert told["left_out"]
    assert [row["id"] for row in first + second] == sorted((str(job.pk) for job in jobs), reverse=True)


def test_masked_values_are_not_exported(settings):
    """A file is read by more people than the database."""
    settings.WORKQUEUE = {"MASK": ["card"]}
    JobFactory(kwargs='{"card": "4111"}')

    assert "4111" not in call("export")


def test_export_that_cannot_work_is_refused():
    """Before the first line."""
    assert "'soon' is no place" in refused("export", "--after=soon")
    assert "invalid choice" in refused("export", "--state=lost")


def test_lines_may_be_piped_into_what_stops_reading(process_environment, transactional_db):
    """As head does; that is no fault of the command's."""
    JobFactory.create_batch(300, args=json.dumps(["x" * 2000]))
    command = f"{sys.executable} testproject/manage.py workqueue export | head -n 1"

    done = subprocess.run(
        ["/bin/sh", "-c", command], check=False, capture_output=True, env=process_environment, timeout=60
    )

    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
