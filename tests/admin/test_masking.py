"""Masked values are on no page of the admin but the answer to a permitted, logged request for them."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import LogEntry

from django_workqueue.domain.masking import MASKED
from django_workqueue.models import DeadLetter, FinishedJob, Job, Schedule, Workflow
from django_workqueue.testing import drain
from django_workqueue.workflows import chain
from tests import samples
from tests.admin.conftest import VIEWS
from tests.admin.pages import SCREENS, every_page, page, told
from tests.factories import (
    DeadLetterFactory,
    FailureFactory,
    FinishedJobFactory,
    JobFactory,
    ScheduleFactory,
    WorkflowFactory,
)

pytestmark = pytest.mark.django_db

SECRET = "secret-17"
ERROR = f"ValueError: {SECRET} was refused"
GIVEN = {
    "task": "tests.samples.sign_in",
    "args": json.dumps(["olga", SECRET]),
    "kwargs": json.dumps({"profile": {"password": SECRET, "city": "Bern"}}),
    "metadata": json.dumps({"token": SECRET}),
}
DECIDE = ("requeue_deadletter", "amend_deadletter")


@pytest.fixture(autouse=True)
def _masked(settings):
    settings.WORKQUEUE = {"MASK": ["*token*", "password"]}


def jobs():
    """Make a job in each of the places where one may be, with a failure, and return them with their screens."""
    rows = {
        "job": JobFactory(**GIVEN, last_error=ERROR, progress=json.dumps({"done": 1, "total": 2, "text": SECRET})),
        "finishedjob": FinishedJobFactory(**GIVEN, last_error=ERROR, result=json.dumps({"token": SECRET})),
        "deadletter": DeadLetterFactory(**GIVEN, last_error=ERROR),
    }
    for row in rows.values():
        FailureFactory(job_id=row.pk, message=ERROR, traceback=f"Traceback\n  {ERROR}")
    return rows


def body(response):
    """Return what a browser gets, as text."""
    assert response.status_code == 200
    return response.content.decode()


def test_values_are_on_no_page(operator):
    """Names and places are told, and what stands beside them; values are not."""
    for model, row in jobs().items():
        assert SECRET not in body(operator.get(page(model)))
        shown = body(operator.get(page(model, row.pk)))
        assert SECRET not in shown
        assert "olga" in shown
        assert "Bern" in shown
        assert "ValueError" in shown
        assert shown.count(MASKED) >= 5
        assert "Reveal masked values" not in shown
    assert SECRET not in body(operator.get(page("deadletter", name="groups")))
    letter = DeadLetter.objects.get()
    for name in ("requeue", "amend"):
        assert SECRET not in body(operator.get(page("deadletter", letter.pk, name=name)))


def test_values_are_on_no_page_that_there_is(admin_client):
    """Pages are found in the addresses of the admin, so new ones are looked at; superusers see no values either."""
    rows = {name: factory() for name, factory in SCREENS.items()} | {"schedule": schedule()} | jobs()
    for address in every_page(rows):
        assert SECRET not in admin_client.get(address, follow=True).getvalue().decode(), address


@pytest.mark.parametrize("model", ["job", "finishedjob", "deadletter"])
def test_reveal_shows_the_values_on_one_answer_and_logs_their_names(browser, model):
    """Who saw what, without saying it again; the page after it is as before, and no cache keeps it."""
    client, row = browser(*VIEWS, "reveal_job"), jobs()[model]
    address = page(model, row.pk, name="reveal")
    assert address in body(client.get(page(model, row.pk)))

    response = client.post(address)

    shown = body(response)
    assert shown.count(SECRET) >= 5
    assert MASKED not in shown
    assert "Reveal masked" not in shown
    assert "no-store" in response["Cache-Control"]
    entry = LogEntry.objects.get()
    assert entry.user.username == "vera"
    assert entry.object_id == str(row.pk)
    assert entry.change_message == "Revealed: password, token."
    assert SECRET not in body(client.get(page(model, row.pk)))


@pytest.mark.parametrize("permissions", [VIEWS, ("reveal_job",), (*VIEWS, *DECIDE, "cancel_job")])
def test_nobody_reveals_without_both_permissions(browser, permissions):
    """Neither the right to look nor the right to decide is the right to read."""
    client = browser(*permissions)
    for model, row in jobs().items():
        response = client.post(page(model, row.pk, name="reveal"))
        assert response.status_code == 403
        assert SECRET not in response.content.decode()
    assert not LogEntry.objects.exists()


def test_reveal_is_a_post_that_nobody_can_be_led_to(browser):
    """A link in a mail must not put values on a screen, nor write in the log."""
    client, row = browser(*VIEWS, "reveal_job", csrf=True), jobs()["job"]
    address = page("job", row.pk, name="reveal")

    assert client.get(address).status_code == 405
    assert client.post(address).status_code == 403
    assert not LogEntry.objects.exists()


def test_reveal_of_a_job_that_is_gone_or_hides_nothing_logs_nothing(browser):
    """There is nothing to tell of."""
    client, plain = browser(*VIEWS, "reveal_job"), JobFactory(task="tests.samples.add", args="[1,2]", kwargs="{}")

    assert "Reveal" not in body(client.get(page("job", plain.pk)))
    assert client.post(page("job", plain.pk, name="reveal")).status_code == 200
    gone = DeadLetterFactory(**GIVEN)
    assert client.post(page("job", gone.pk, name="reveal")).status_code == 302
    assert client.post(page("job", "no-id", name="reveal")).status_code == 302
    assert not LogEntry.objects.exists()


# -- decisions ---------------------------------------------------------------------------------------------------------


def amend(client, letter, args, kwargs):
    """Answer the form of changed arguments."""
    return client.post(
        page("deadletter", letter.pk, name="amend"), {"args": json.dumps(args), "kwargs": json.dumps(kwargs)}
    )


def test_masked_argument_stays_as_it_was_when_another_is_changed(operator):
    """Whoever corrects a name need not know the token."""
    letter = DeadLetterFactory(**GIVEN)

    amend(operator, letter, ["vera", MASKED], {"profile": {"password": "new", "city": "Bern"}})

    job = Job.objects.get()
    assert json.loads(job.args) == ["vera", SECRET]
    assert json.loads(job.kwargs) == {"profile": {"password": "new", "city": "Bern"}}
    assert SECRET not in str(list(LogEntry.objects.values()))


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([MASKED, MASKED], {}),
        (["olga", MASKED], {"note": MASKED}),
        (["olga", MASKED, MASKED, MASKED], {"user": 1}),
        (["olga"], {}),
        (["olga", "\ud800"], {}),
    ],
)
def test_refusals_do_not_tell_masked_values(operator, args, kwargs):
    """A form that is shown again, and the message above it, are pages as well."""
    letter = DeadLetterFactory(**GIVEN)

    response = amend(operator, letter, args, kwargs)

    assert SECRET not in body(response)
    assert not Job.objects.exists()
    assert not LogEntry.objects.exists()
    (message,) = told(response)
    assert "left as it is" in message


def test_search_is_no_way_to_guess_a_masked_value(operator):
    """A list that is empty for a wrong guess and full for the right one would tell it."""
    row = JobFactory(**GIVEN)

    for query in (SECRET, f"args:{SECRET}", f"token:{SECRET}", f"kwargs:{SECRET}", f"error:{SECRET}"):
        assert str(row.pk) not in body(operator.get(page("job", query=f"?q={query}")))
    for lookup in ("args__contains", "kwargs__contains", "metadata__startswith", "last_error__contains"):
        response = operator.get(page("job", query=f"?{lookup}={SECRET}"), follow=True)
        assert response.redirect_chain or response.status_code == 400


# -- workflows and schedules -------------------------------------------------------------------------------------------


def test_result_of_a_workflow_is_masked(viewer):
    """It holds what its tasks have returned."""
    row = WorkflowFactory(result=json.dumps([{"token": SECRET, "city": "Bern"}]))

    shown = body(viewer.get(page("workflow", row.pk)))

    assert SECRET not in shown
    assert "Bern" in shown


def test_failure_of_a_workflow_does_not_quote_masked_values(settings):
    """Its problem is told where the job is not at hand, and given to the callback as an argument."""
    settings.WORKQUEUE = {"MASK": ["message"]}
    part = samples.fail.using(max_attempts=1).signature(SECRET)
    chain(part).using(on_error=samples.return_it.signature()).enqueue()

    drain("default", raise_errors=False)

    told = f"tests.samples.OutOfPaperError: {MASKED}"
    assert told.endswith(Workflow.objects.get().problem)
    (callback,) = FinishedJob.objects.all()
    assert SECRET not in callback.args
    assert json.loads(callback.result)["problem"] in told


def schedule(**columns):
    """Make a schedule with a secret among its arguments."""
    return ScheduleFactory(task=GIVEN["task"], args=GIVEN["args"], kwargs=GIVEN["kwargs"], **columns)


def edited(client, row, **changes):
    """Submit the form of a schedule as it is shown, with ``changes``."""
    form = client.get(page("schedule", row.pk)).context["adminform"].form
    shown = {name: form[name].value() for name in form.fields}
    given = {name: value for name, value in (shown | changes).items() if value is not None and value is not False}
    return client.post(page("schedule", row.pk), given)


EDIT = ("change_schedule", "add_schedule")


def test_arguments_of_a_schedule_are_masked(browser):
    """On its page, and in the form of whoever may edit it."""
    row = schedule()
    shown = body(browser(*VIEWS).get(page("schedule", row.pk)))
    assert SECRET not in shown
    assert "olga" in shown


def test_masked_argument_of_a_schedule_stays_when_it_is_edited(browser):
    """Whoever moves it to another hour need not know the token."""
    client, row = browser(*VIEWS, *EDIT), schedule()
    assert SECRET not in body(client.get(page("schedule", row.pk)))

    response = edited(client, row, cron="0 4 * * *", args=json.dumps(["vera", MASKED]))

    assert response.status_code == 302, response.context["errors"]
    row.refresh_from_db()
    assert row.cron == "0 4 * * *"
    assert json.loads(row.args) == ["vera", SECRET]
    assert json.loads(row.kwargs) == json.loads(GIVEN["kwargs"])
    assert SECRET not in str(list(LogEntry.objects.values()))


@pytest.mark.parametrize(
    "changes",
    [
        {"task": "tests.samples.add"},
        {"args": json.dumps([MASKED, MASKED])},
        {"kwargs": json.dumps({"note": MASKED})},
    ],
)
def test_masked_argument_of_a_schedule_is_not_given_to_another_task_or_name(browser, changes):
    """A task that returns what it is given would print it."""
    client, row = browser(*VIEWS, *EDIT), schedule()

    response = edited(client, row, **changes)

    assert "stands where no masked value was" in body(response).replace("&#x27;", "'")
    assert SECRET not in response.content.decode()
    assert json.loads(Schedule.objects.get().args) == ["olga", SECRET]


def test_new_schedule_keeps_what_is_typed(browser):
    """There is nothing to put back."""
    client = browser(*VIEWS, *EDIT)
    given = {"name": "new", "task": GIVEN["task"], "args": GIVEN["args"], "kwargs": "{}", "cron": "0 3 * * *"}
    given |= {"catch_up": "latest", "overlap": "skip", "queue": "default", "priority": 0, "enabled": "on"}

    response = client.post(page("schedule", name="add"), given)

    assert response.status_code == 302
    assert Schedule.objects.get().args == GIVEN["args"]
