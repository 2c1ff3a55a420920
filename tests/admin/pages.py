"""Addresses of the admin's pages, and what stands on them."""

from __future__ import annotations

from html.parser import HTMLParser

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.messages import get_messages
from django.urls import URLPattern, reverse

from tests.factories import (
    DeadLetterFactory,
    FinishedJobFactory,
    JobFactory,
    LeaseFactory,
    PauseFactory,
    QueueFactory,
    ScheduleFactory,
    WorkerFactory,
    WorkflowFactory,
)

APP = "django_workqueue"
SCREENS = {
    "deadletter": DeadLetterFactory,
    "finishedjob": FinishedJobFactory,
    "job": JobFactory,
    "lease": LeaseFactory,
    "pause": PauseFactory,
    "queue": QueueFactory,
    "schedule": ScheduleFactory,
    "worker": WorkerFactory,
    "workflow": WorkflowFactory,
}
"""Every screen, with the factory of its rows."""


def page(model, *args, name=None, query=""):
    """Return the address of the list of ``model``; with a key that of one row; ``name`` asks for another page."""
    name = name or ("change" if args else "changelist")
    return reverse(f"admin:django_workqueue_{model}_{name}", args=args) + query


def listed(response):
    """Return the keys of the rows that a list shows, in order."""
    return [row.pk for row in response.context["cl"].result_list]


def told(response):
    """Return the messages that an answer shows."""
    return [str(message) for message in get_messages(response.wsgi_request)]


def statements(captured):
    """Return what was asked of the tables: without the frame that a page is read in, a transaction and its settings."""
    frame = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT", "SET LOCAL", "BEGIN", "ROLLBACK")
    return [query["sql"] for query in captured if not query["sql"].startswith(frame)]


def patterns(entries):
    """Yield every address of ours in the admin."""
    for entry in entries:
        if not isinstance(entry, URLPattern):
            yield from patterns(entry.url_patterns)
        elif (entry.name or "").startswith(f"{APP}_"):
            yield entry


def every_page(rows):
    """Yield the address of every page of ours; of those about a row, that of its model in ``rows``."""
    yield reverse("admin:index")
    yield reverse("admin:app_list", args=(APP,))
    for pattern in patterns(admin.site.get_urls()):
        model = pattern.name.removeprefix(f"{APP}_").partition("_")[0]
        arguments = [quote(rows[model].pk)] if "<" in str(pattern.pattern) else []
        yield reverse(f"admin:{pattern.name}", args=arguments)


class Elements(HTMLParser):
    """The elements of a page, as a browser would find them: each with its attributes."""

    def __init__(self, response):
        super().__init__()
        self.found = []
        self.feed(response.content.decode())

    def handle_starttag(self, tag, attrs):
        """Remember one element."""
        self.found.append((tag, dict(attrs)))
