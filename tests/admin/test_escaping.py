"""Stored text is data of strangers: it is shown, and never runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.admin.utils import quote
from django.db import models as fields

from django_workqueue.admin import dead_letters
from tests.admin.pages import SCREENS, Elements, page
from tests.factories import DeadLetterFactory, FailureFactory, JobFactory

pytestmark = pytest.mark.django_db

SCRIPT = '"><script>alert(1)</script>'
IMAGE = "'><img src=x onerror=alert(1)>"
HOSTILE = f"{SCRIPT}{IMAGE}"


def hostile_columns(model):
    """Return hostile text for every column of ``model`` that holds text, as long as it may be."""
    columns = {}
    for field in model._meta.concrete_fields:
        if isinstance(field, fields.CharField | fields.TextField) and not field.choices:
            columns[field.name] = HOSTILE[: field.max_length]
    return columns


def assert_harmless(response):
    """Assert that a page holds the hostile text, and that no element came of it."""
    content = response.content.decode()
    assert response.status_code == 200
    assert "&lt;script&gt;alert(1)" in content
    for tag, attributes in Elements(response).found:
        assert not (tag == "script" and not attributes.get("src")), "a script that stands in the page"
        assert not (tag == "img" and attributes.get("src") == "x")
        assert not [name for name in attributes if name.startswith("on")]
    assert "<script>alert" not in content
    assert "<img src=x" not in content


@pytest.mark.parametrize("model", SCREENS)
def test_list_and_page_escape_every_column(viewer, model):
    """Arguments and errors hold what users typed (sidekiq#1297, rq-dashboard#526, que-web#9)."""
    factory = SCREENS[model]
    row = factory(**hostile_columns(factory._meta.model))

    assert_harmless(viewer.get(page(model)))
    assert_harmless(viewer.get(page(model, quote(row.pk))))


def test_failures_are_escaped(viewer):
    """The message and the traceback of an exception quote what it was given."""
    letter = DeadLetterFactory()
    FailureFactory(job_id=letter.pk, **hostile_columns(FailureFactory._meta.model))

    response = viewer.get(page("deadletter", letter.pk))

    assert_harmless(response)
    assert response.content.decode().count("&lt;script&gt;alert(1)") >= 4


@pytest.mark.parametrize("name", ["requeue", "discard"])
def test_confirmation_is_escaped(operator, name):
    """It names what is about to be run or destroyed, and repeats what was posted."""
    letter = DeadLetterFactory(task=HOSTILE)

    assert_harmless(operator.get(page("deadletter", letter.pk, name=name)))
    posted = {"action": name, "_selected_action": letter.pk, "index": 0}
    assert_harmless(operator.post(page("deadletter"), posted))


def test_refusal_is_escaped(operator, monkeypatch):
    """A message quotes keys and names."""
    letter = DeadLetterFactory()
    refusing = replace(dead_letters.REQUEUE, act=lambda *_: HOSTILE)
    monkeypatch.setattr(dead_letters, "REQUEUE", refusing)

    posted = {"action": "requeue", "_selected_action": letter.pk, "confirmed": "yes"}
    response = operator.post(page("deadletter"), posted, follow=True)

    assert_harmless(response)
    assert "1 dead letter was left as it is. &quot;&gt;&lt;script&gt;" in response.content.decode()


def test_history_of_changes_is_escaped(operator):
    """The log keeps the name of the object."""
    letter = DeadLetterFactory(task=HOSTILE)
    operator.post(page("deadletter", letter.pk, name="requeue"))

    assert b"<script>alert" not in operator.get("/admin/").content


@pytest.mark.parametrize("query", [f"?q={SCRIPT}", f"?queue={SCRIPT}", f"?state={SCRIPT}"])
def test_address_is_escaped(viewer, query):
    """A link that somebody sends must not run a script in the reader's session."""
    JobFactory()

    content = viewer.get(page("job", query=query), follow=True).content.decode()

    assert "<script>alert" not in content


@pytest.mark.parametrize(
    "args", ["[not json", "null", '{"a":', "", '["\\ud800"]', "[" * 3000, "\x1b[31m", '"' + "x" * 30_000]
)
def test_arguments_that_cannot_be_decoded_are_shown_raw(viewer, args):
    """Such a row is why a person looks: the page must open, and show what is stored."""
    letter = DeadLetterFactory(args=args, kwargs=args, metadata=args, rejected=True)
    job = JobFactory(args=args, kwargs=args, metadata=args)

    for address in (page("deadletter", letter.pk), page("job", job.pk), page("deadletter"), page("job")):
        assert viewer.get(address).status_code == 200
    assert args[:20] in viewer.get(page("job", job.pk)).content.decode().replace("&quot;", '"')


@pytest.mark.parametrize("model", SCREENS)
def test_pages_run_under_a_strict_content_security_policy(operator, model):
    """With default-src 'self' a browser drops what stands inline; nothing of ours may depend on it."""
    row = SCREENS[model]()
    addresses = [page(model), page(model, row.pk)]
    if model == "deadletter":
        FailureFactory(job_id=row.pk)
        addresses.append(page(model, row.pk, name="discard"))

    for address in addresses:
        for tag, attributes in Elements(operator.get(address)).found:
            assert tag != "style"
            assert "style" not in attributes
            assert tag != "script" or attributes.get("src", "").startswith("/")
            assert not [name for name in attributes if name.startswith("on")]
            assert not attributes.get("href", "").startswith(("http", "//", "javascript"))
