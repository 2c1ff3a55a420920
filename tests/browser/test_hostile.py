"""What strangers typed is shown as text: no script of theirs runs, wherever it was put."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils.http import urlencode

from django_workqueue.models import DeadLetter
from tests.admin.pages import SCREENS
from tests.admin.test_escaping import HOSTILE, IMAGE, hostile_columns
from tests.factories import FailureFactory, PauseFactory

from .places import addresses

pytestmark = pytest.mark.browser

ENDINGS = ("_changelist", "_change", "_overview", "_statistics", "_groups", "_requeue")
"""Of the names of pages that show stored text each in a way of its own."""


@pytest.fixture
def hostile(transactional_db):
    """Fill every text that a user, a task or an error can fill, in a row of every kind."""
    for factory in SCREENS.values():
        factory(**hostile_columns(factory._meta.model))
    FailureFactory(job_id=DeadLetter.objects.get().pk, **hostile_columns(FailureFactory._meta.model))
    PauseFactory(kind="tenant", name=HOSTILE[:100], paused_by=HOSTILE)


def test_no_page_runs_what_was_stored(page, hostile, admin_client):
    """Under the policy a script that became part of a page is refused aloud, and one that ran would open a dialog."""
    for name, address in addresses(admin_client).items():
        if name.endswith(ENDINGS):
            page.goto(address)
            assert page.locator("img[src=x]").count() == 0, name


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("job_changelist", "q"), ("job_changelist", "queue"), ("queue_statistics", "task"), ("deadletter_groups", "page")],
)
def test_no_page_runs_what_an_address_holds(page, hostile, name, parameter):
    """A link that somebody sends is data of a stranger too."""
    page.goto(f"{reverse(f'admin:django_workqueue_{name}')}?{urlencode({parameter: IMAGE})}")

    assert page.locator("img[src=x]").count() == 0


def test_message_and_log_do_not_run_it(page, expect, hostile):
    """Messages and the history quote names, keys and reasons."""
    page.goto(reverse("admin:django_workqueue_deadletter_discard", args=(DeadLetter.objects.get().pk,)))
    page.get_by_label("Reason").fill(HOSTILE)
    page.get_by_role("button", name="Yes, discard").click()

    expect(page.get_by_text("1 dead letter was discarded.")).to_be_visible()
    page.goto(reverse("admin:index"))
    expect(page.locator("#recent-actions-module")).to_contain_text("<script>alert(1)</script>")
