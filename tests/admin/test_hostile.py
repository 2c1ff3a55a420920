"""
Every page, form, message and file of the admin, with hostile text in every field that anybody can fill.

The pages are found in the addresses of the admin and in the forms on them, so that a new one is looked at too.
"""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from django_workqueue.admin.bulk import decide
from django_workqueue.models import Job
from tests.admin.pages import APP, every_page, patterns
from tests.factories import DeadLetterFactory
from tests.hostile import FACTORIES, PAYLOADS, assert_harmless, make_all, written

pytestmark = pytest.mark.django_db

MOST_STEPS = 3
"""Forms that follow each other: the list, the question, the answer."""


@pytest.fixture(params=PAYLOADS)
def payload(request):
    """Return each of the hostile texts."""
    return PAYLOADS[request.param]


@pytest.fixture
def client(payload):
    """Return the browser of somebody who may do everything, and whose name is not nice either."""
    client = Client(raise_request_exception=True)
    name = written(payload, 150).replace("\x00", "")
    client.force_login(User.objects.create_superuser(name, first_name=name[:150]))
    return client


@pytest.fixture
def rows(payload, settings):
    """Make the hostile rows."""
    settings.WORKQUEUE = {"MASK": ["*wq-x*"]}
    return make_all(payload)


def answers(form, here, fill):
    """Yield what to send for a form: one answer, or one for each action of a list."""
    given = []
    for field in form["fields"]:
        name, kind, value = field["name"], field["kind"], field["value"]
        if kind in {"checkbox", "radio"} and not field["on"] and name != "_selected_action":
            continue
        if kind in {"text", "textarea", "search"} and fill is not None:
            value = fill
        given.append((name, value))
    actions = next((field["choices"] for field in form["fields"] if field["name"] == "action"), [])
    for action in filter(None, actions or ["submit"]):
        others = [pair for pair in given if pair[0] != "action"]
        yield urljoin(here, form["action"] or here), [*others, ("action", action)] if actions else given


def submit(client, page, here, fill, steps=MOST_STEPS):
    """Send every form of a page that changes something, and those of the pages that answer; each is undone after."""
    for form in page.forms if page else []:
        if form["method"] != "post" or not _is_ours(urljoin(here, form["action"] or here)):
            continue
        for address, pairs in answers(form, here, fill):
            with transaction.atomic():
                response = client.post(address, _grouped(pairs), follow=True)
                follower = assert_harmless(response)
                place = response.request["PATH_INFO"]
                asks = follower is not None and b'name="confirmed"' in response.content and steps > 1
                if asks:
                    submit(client, follower, place, fill, steps - 1)
                transaction.set_rollback(True)


def _grouped(pairs):
    data = {}
    for name, value in pairs:
        data.setdefault(name, []).append(value)
    return data


def _shape(address):
    """Return what tells pages apart: two that differ in what they filter by alone are one."""
    parts = urlsplit(address)
    return parts.path, tuple(sorted({name for name, _value in parse_qsl(parts.query)}))


def _is_ours(address):
    return urlsplit(address).path.startswith(reverse("admin:app_list", args=(APP,)))


def test_every_model_has_a_hostile_row():
    """A new table of text that strangers fill must not be forgotten here."""
    there = {model._meta.model_name for model in apps.get_app_config(APP).get_models()}

    assert there == FACTORIES.keys() | {"workflowmember", "firing"}


def test_every_page_shows_hostile_text_as_text(client, rows):
    """Arguments, errors and names are data of strangers (sidekiq#1297, rq-dashboard#526, que-web#9)."""
    todo, seen = list(every_page(rows)), {}
    while todo:
        address = todo.pop()
        if _shape(address) in seen:
            continue
        response = client.get(address, follow=True)
        seen[_shape(address)] = response.status_code
        page = assert_harmless(response)
        links = [attributes.get("href", "") for tag, attributes in page.elements if tag == "a"] if page else []
        todo += [each for each in (urljoin(address, link) for link in links) if _is_ours(each)]

    assert list(seen.values()).count(200) > 60


def test_every_form_and_message_shows_hostile_text_as_text(client, rows, payload):
    """What a form repeats, a confirmation names, a message quotes and a person types is foreign too."""
    for address in every_page(rows):
        page = assert_harmless(client.get(address, follow=True))
        for fill in (None, written(payload, 400)):
            submit(client, page, address, fill)


def test_every_address_takes_hostile_text_as_text(client, rows, payload):
    """A link that somebody sends must not run a script in the reader's session."""
    text = written(payload, 400)
    names = ("q", "queue", "state", "task", "tenant", "fingerprint", "range", "span")
    for query in ({"q": text}, {"after": text}, {"from": text}, {"page": text, "e": text}, dict.fromkeys(names, text)):
        for pattern in patterns(admin.site.get_urls()):
            if "<" not in str(pattern.pattern):
                assert_harmless(client.get(reverse(f"admin:{pattern.name}"), query, follow=True))


def test_large_decision_tells_hostile_text_as_text(client, rows, payload):
    """The job that does it carries the address and the reason, and its page shows both."""
    DeadLetterFactory.create_batch(101, task=written(payload, 300))
    reason = written(payload, 400).replace("\x00", "")

    response = client.post(reverse(f"admin:{APP}_deadletter_all_requeue"), {"reason": reason}, follow=True)

    assert_harmless(response)
    job = Job.objects.get(task=decide.module_path)
    assert json.loads(job.kwargs)["options"]["reason"] == reason.strip()
    assert response.request["PATH_INFO"] == reverse(f"admin:{APP}_job_change", args=(job.pk,))
