"""Jobs as files: lines of JSON in batches, bounded, masked, for whoever may look."""

from __future__ import annotations

import json

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_workqueue.lifecycle import exporting
from django_workqueue.lifecycle.exporting import export
from django_workqueue.lifecycle.keyset import Keyset
from django_workqueue.models import Job
from django_workqueue.store import store_for
from tests.admin.pages import page
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory

pytestmark = pytest.mark.django_db

PLACES = {"job": JobFactory, "finishedjob": FinishedJobFactory, "deadletter": DeadLetterFactory}
HOSTILE = '=1+1\x1b[31m\n"><script>\u2028'


def lines(response):
    """Return what the lines of a file say."""
    assert response["Content-Type"] == "application/x-ndjson"
    assert response["Content-Disposition"].startswith("attachment; filename=")
    return [json.loads(line) for line in response.getvalue().decode().splitlines()]


@pytest.mark.parametrize("model", PLACES)
def test_what_the_filters_leave_is_a_file(viewer, model):
    """All pages of it, newest first; looking is enough of a permission."""
    jobs = PLACES[model].create_batch(120, tenant="acme", args='[17,"ü"]')
    PLACES[model]()

    told = lines(viewer.get(page(model, name="export", query="?tenant=acme&after=x")))

    assert {each["id"] for each in told} == {str(job.pk) for job in jobs}
    assert told[0]["args"] == [17, "ü"]
    assert told[0]["kwargs"] == {"copy": True}
    assert told[0]["tenant"] == "acme"
    assert told[0]["enqueued_at"].startswith("20")


@pytest.mark.parametrize("model", PLACES)
def test_selected_rows_are_a_file(viewer, model):
    """And no others."""
    jobs = PLACES[model].create_batch(2)
    PLACES[model]()

    told = lines(viewer.post(page(model), {"action": "export", "_selected_action": [job.pk for job in jobs]}))

    assert {each["id"] for each in told} == {str(job.pk) for job in jobs}


@pytest.mark.parametrize("model", PLACES)
def test_masked_values_are_in_no_file(viewer, settings, model):
    """Neither among the arguments nor in the words of an error that quotes them."""
    settings.WORKQUEUE = {"MASK": ["*token*"]}
    more = {"failures": 1, "failures__message": "no tok_4711"} if model == "deadletter" else {}
    job = PLACES[model](kwargs='{"token":"tok_4711","copy":true}', last_error="ValueError: no tok_4711", **more)

    for address in (page(model, name="export"), page(model, job.pk, name="json")):
        content = viewer.get(address).getvalue().decode()
        assert "tok_4711" not in content
        assert "[masked]" in content


@pytest.mark.parametrize("model", PLACES)
def test_one_job_is_a_file_with_its_failures(viewer, model):
    """What is asked for in a report of a fault."""
    more = {"failures": 2} if model == "deadletter" else {}
    job = PLACES[model](**more)

    response = viewer.get(page(model, job.pk, name="json"))

    assert response["Content-Disposition"] == f'attachment; filename="{job.pk}.json"'
    told = response.json()
    assert (told["id"], told["args"]) == (str(job.pk), [17])
    assert [each["attempt"] for each in told["failures"]] == ([1, 2] if more else [])


@pytest.mark.parametrize("model", PLACES)
def test_files_ask_for_the_permission_to_look(browser, model):
    """Each door by itself."""
    job = PLACES[model]()
    for address in (page(model, name="export"), page(model, job.pk, name="json")):
        assert "/login/" in Client().get(address).url
    client = browser(*(f"view_{name}" for name in PLACES if name != model))

    assert client.get(page(model, name="export")).status_code == 403
    assert client.get(page(model, job.pk, name="json")).status_code == 403
    assert client.post(page(model), {"action": "export", "_selected_action": job.pk}).status_code == 403


def test_hostile_text_stays_within_its_line(viewer):
    """A line is one object, whatever it holds, in plain ASCII: no control character reaches a terminal."""
    JobFactory(kwargs=json.dumps({"name": HOSTILE}), task="shop.tasks.a")

    content = viewer.get(page("job", name="export")).getvalue()

    assert content.count(b"\n") == 1
    assert json.loads(content)["kwargs"]["name"] == HOSTILE
    assert all(32 <= byte < 127 for byte in content.rstrip(b"\n"))


@pytest.mark.parametrize("args", ["[not json", "null", '["\\ud800"]', "[" * 3000])
def test_row_that_cannot_be_decoded_is_told_as_it_is_stored(viewer, args):
    """It must not end the file in the middle."""
    JobFactory(args=args)
    JobFactory()

    assert len(lines(viewer.get(page("job", name="export")))) == 2


def test_file_is_bounded_and_says_where_it_was_cut(monkeypatch):
    """Whoever reads it must know that there is more."""
    JobFactory.create_batch(7)

    told = [json.loads(line) for line in export(Job.objects.all(), Keyset(("-id",)), most=5)]

    assert len(told) == 6
    assert told[-1] == {"left_out": True}
    assert all("id" in each for each in told[:-1])


def test_rows_are_read_in_batches(monkeypatch):
    """However many there are, few are in memory, and none are skipped by counting."""
    monkeypatch.setattr(exporting, "BATCH", 3)
    JobFactory.create_batch(7)

    with CaptureQueriesContext(connection) as captured:
        told = list(export(Job.objects.all(), Keyset(("-id",))))

    assert len(told) == 7
    assert len(captured) == 4
    assert all("OFFSET" not in query["sql"] for query in captured)


@pytest.mark.parametrize("query", ["?q=%00", "?state=x&after=nonsense", "?from=nonsense"])
def test_address_that_cannot_be_read_leads_to_the_list(viewer, query):
    """Nor is it an error of the server."""
    assert viewer.get(page("job", name="export", query=query), follow=True).status_code == 200


def test_file_whose_list_would_take_too_long_is_not_begun(viewer, monkeypatch):
    """A page says so, as it does for the list itself."""
    JobFactory()

    def slow(*_args):
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setattr("django_workqueue.admin.changelist.BoundedChangeList.get_results", slow)
    monkeypatch.setattr(type(store_for()), "is_too_slow", lambda *_: True)

    response = viewer.get(page("job", name="export"))

    assert response["Content-Type"].startswith("text/html")
    assert b"This takes too long" in response.content


def test_file_of_a_job_that_has_moved_leads_to_its_page(viewer):
    """It may have ended since the page was read."""
    job = FinishedJobFactory()

    response = viewer.get(page("job", job.pk, name="json"), follow=True)

    assert response.context["original"] == job
