"""What the commands print, to people and to programs, does not hold masked values unless they are asked for."""

from __future__ import annotations

import json

import pytest

from django_workqueue.domain.masking import MASKED
from tests.factories import DeadLetterFactory, FailureFactory, FinishedJobFactory, ScheduleFactory

from .calling import call, refused, report

pytestmark = pytest.mark.django_db

SECRET = "secret-17"


@pytest.fixture
def row(settings):
    """Make a dead letter whose arguments, metadata and error hold a secret."""
    settings.WORKQUEUE = {"MASK": ["*token*", "correlation_id"]}
    error = f"ValueError: {SECRET} was refused"
    letter = DeadLetterFactory(
        task="tests.samples.sign_in",
        args=json.dumps(["olga", SECRET]),
        metadata=json.dumps({"correlation_id": SECRET}),
        last_error=error,
    )
    FailureFactory(job_id=letter.pk, message=error, traceback=f"Traceback\n{error}")
    return letter


def test_no_list_and_no_job_shows_masked_values(row):
    """Neither does --values: it shows what is not private."""
    ScheduleFactory(task=row.task, args=row.args)
    FinishedJobFactory(task=row.task, args=row.args, result=json.dumps({"token": SECRET}))
    commands = (["jobs"], ["jobs", "--state=succeeded"], ["dead"], ["job", str(row.pk)], ["schedules"])

    for arguments in (*commands, ["job", str(row.pk), "--values"], ["requeue", "--all", "--dry-run"]):
        assert SECRET not in call(*arguments)
        assert SECRET not in call(*arguments, "--format=json")


def test_values_are_shown_but_for_the_masked_ones(row):
    """What stands beside them tells what the job was about."""
    told = report("job", str(row.pk), "--values")

    assert told["args"] == ["olga", MASKED]
    assert told["last_error"] == f"ValueError: {MASKED} was refused"
    assert told["failures"][0]["message"] == f"ValueError: {MASKED} was refused"


def test_reveal_shows_them(row):
    """Whoever has a shell there may ask."""
    told = report("job", str(row.pk), "--values", "--reveal")

    assert told["args"] == ["olga", SECRET]
    assert SECRET in told["failures"][0]["traceback"]
    assert SECRET not in call("job", str(row.pk))


@pytest.mark.parametrize("text", ['{"token": "secret-17"', '["secret-17"]'])
def test_complaint_about_arguments_does_not_quote_them(text):
    """It ends up in the log of whatever has called the command."""
    complaint = refused("enqueue", "tests.samples.sign_in", f"--kwargs={text}")

    assert "JSON" in complaint
    assert SECRET not in complaint


def test_complaint_of_a_call_that_does_not_fit_does_not_quote_them():
    """Names, not values."""
    complaint = refused("enqueue", "tests.samples.sign_in", f'--args=["{SECRET}"]')

    assert "'token'" in complaint
    assert SECRET not in complaint
