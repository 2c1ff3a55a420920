"""Rows whose every text was written by somebody who means harm, and how to see that a page did not fall for it."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from itertools import count

from django.db import connection
from django.db import models as fields

from django_workqueue.domain.states import MemberKind, MemberState
from django_workqueue.models import WorkflowMember
from tests import factories

MARKUP = '=1+1"><wq-x>\'><img src=x onerror=q>{{ 7|add:"70007000" }}</script></textarea></title></pre>'
"""Begins like a formula of a spreadsheet, leaves attributes and elements, and is a template."""
STEERING = "@\x1b[31m\x1b]0;title\x07\u202eright to left\u2066\r\x9b31m\x7f\u2028\x85"
"""Steers terminals, turns text round, and ends lines."""
LONG = "javascript:alert(1)//"
"""A link that runs, and a line without an end."""
PAYLOADS = {"markup": MARKUP, "steering": STEERING, "long": LONG}
LONGEST = 30_000

JSON_COLUMNS = {"args", "kwargs", "metadata", "result", "outcome", "progress"}
OURS = {"wait_histogram", "run_histogram", "plan", "on_error"}
"""What the queue alone writes, from what it has checked."""
FACTORIES = {
    "queue": factories.QueueFactory,
    "queueminute": factories.QueueMinuteFactory,
    "pause": factories.PauseFactory,
    "worker": factories.WorkerFactory,
    "lease": factories.LeaseFactory,
    "job": factories.JobFactory,
    "finishedjob": factories.FinishedJobFactory,
    "deadletter": factories.DeadLetterFactory,
    "failure": factories.FailureFactory,
    "step": factories.StepFactory,
    "schedule": factories.ScheduleFactory,
    "workflow": factories.WorkflowFactory,
}

_numbers = count(1)


def written(payload, most=None):
    """Return ``payload`` as it may be stored: no longer than ``most``, very long where that is the point."""
    text = payload.ljust(most or LONGEST, "x") if payload == LONG else payload
    if connection.vendor == "sqlite" and payload == STEERING:
        # PostgreSQL has no such character.
        text += "\x00"
    return text[:most]


def columns(model, payload):
    """Return ``payload`` for every column of ``model`` that a user, a task or an error can fill."""
    found = {}
    for field in model._meta.concrete_fields:
        if not isinstance(field, fields.CharField | fields.TextField) or field.choices or field.name in OURS:
            continue
        found[field.name] = _json(field.name, payload) if field.name in JSON_COLUMNS else _text(field, payload)
    return found


def _text(field, payload):
    text = written(payload, field.max_length)
    if not (field.unique or field.primary_key):
        return text
    # Unique, and as hostile as before.
    number = str(next(_numbers))
    return text[: (field.max_length or LONGEST) - len(number)] + number


def _json(name, payload):
    # What JSON holds is escaped in it: the database refuses nothing.
    text = written(payload, 500)
    value = {
        "args": [text, {text: [text]}],
        "progress": {"done": 1, "total": 2, "text": text},
    }.get(name, {text: {text: text}, "correlation_id": text, "traceparent": text})
    return json.dumps(value)


def make(name, payload, **given):
    """Make one row of a model that is hostile in every column that ``given`` leaves."""
    factory = FACTORIES[name]
    return factory(**(columns(factory._meta.model, payload) | given))


def make_all(payload):
    """Make rows of every model, which belong together, and return those that are about something by their models."""
    rows = {name: make(name, payload) for name in ("queue", "queueminute", "pause", "worker", "schedule")}
    rows["lease"] = make("lease", payload, worker=rows["worker"].pk, queue=rows["queue"].pk)
    made = {"job": ("job", {}), "finishedjob": ("finishedjob", {}), "deadletter": ("deadletter", {})}
    for model, (name, given) in made.items():
        rows[model] = make(name, payload, queue=rows["queue"].pk, **given)
        make("failure", payload, job_id=rows[model].pk, worker=rows["worker"].pk)
        make("step", payload, job_id=rows[model].pk, key=str(rows[model].pk))
    make("job", payload, state="leased", lease=rows["lease"])
    rows["workflow"] = make("workflow", payload, state="failed", culprit=rows["deadletter"].pk)
    WorkflowMember.objects.create(
        **columns(WorkflowMember, payload)
        | {"id": rows["job"].pk, "workflow": rows["workflow"], "position": 0, "last": 0},
        kind=MemberKind.TASK,
        state=MemberState.ACTIVE,
    )
    return rows


# -- looking at what came of it ----------------------------------------------------------------------------------------


class Page(HTMLParser):
    """A page as a browser finds it: its elements, and its forms with what they would send."""

    def __init__(self, content):
        super().__init__()
        self.elements, self.forms = [], []
        self._area = self._choice = None
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        """Remember an element, and what a form has."""
        given = {name: value or "" for name, value in attrs}
        self.elements.append((tag, given))
        if tag == "form":
            self.forms.append(
                {"method": given.get("method", "get").lower(), "action": given.get("action", ""), "fields": []}
            )
        elif self.forms and given.get("name") and tag in {"input", "textarea", "select"}:
            self._field(tag, given)
        elif tag == "option" and self._choice is not None:
            self._choice["choices"].append(given.get("value", ""))
            if "selected" in given:
                self._choice["value"] = given.get("value", "")

    def _field(self, tag, given):
        kind = given.get("type", "text") if tag == "input" else tag
        value = given.get("value", "on" if kind == "checkbox" else "")
        field = {"name": given["name"], "kind": kind, "value": value, "choices": [], "on": "checked" in given}
        self.forms[-1]["fields"].append(field)
        self._area = field if tag == "textarea" else None
        self._choice = field if tag == "select" else None

    def handle_data(self, data):
        """Keep the text of a text area."""
        if self._area is not None:
            self._area["value"] += data

    def handle_endtag(self, tag):
        """Leave a text area."""
        if tag == "textarea":
            self._area = None


def assert_harmless(response):
    """Assert that an answer is what it is meant to be, whatever stands in it; return it as a page if it is one."""
    assert response.status_code < 500
    kind = response.headers.get("Content-Type", "")
    content = b"".join(response.streaming_content) if response.streaming else response.content
    text = content.decode()
    if kind.startswith("text/html"):
        return assert_harmless_page(text)
    if "csv" in kind:
        assert_harmless_table(text)
    elif "json" in kind:
        for line in text.splitlines() if "lines" in kind or "ndjson" in kind else [text]:
            json.loads(line)
    return None


def assert_harmless_page(text):
    """Assert that no text has become markup, a link that runs, or a template."""
    assert "<wq-x" not in text
    assert "70007007" not in text
    page = Page(text)
    for tag, attributes in page.elements:
        assert tag != "script" or attributes.get("src", "").startswith("/"), attributes
        assert not (tag == "img" and attributes.get("src") == "x")
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        for name in ("href", "src", "action", "formaction", "data"):
            address = re.sub(r"[\x00-\x20]", "", attributes.get(name, "")).lower()
            assert not address.startswith(("javascript:", "data:", "//", "http:", "https:")), (tag, attributes)
    return page


def assert_harmless_table(text):
    """Assert that a spreadsheet takes no cell for a formula."""
    for row in csv.reader(text.splitlines(keepends=True)):
        for cell in row:
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), cell
            assert not cell.startswith("-") or re.fullmatch(r"-[\d.]*", cell), cell


def assert_harmless_output(text):
    """Assert that nothing that is printed steers a terminal."""
    strange = [each for each in text if each != "\n" and not each.isprintable()]
    assert not strange, sorted(set(strange))
