"""From the warning to the last letter: a person finds what died, decides, and watches it being done."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from django_workqueue.models import DeadLetter, Job
from django_workqueue.testing.worker_thread import ThreadedWorker
from tests.admin.pages import page as address
from tests.factories import DeadLetterFactory

from .keyboard import Keyboard

pytestmark = pytest.mark.browser

LETTERS = 120
"""More than one request handles, so that the decision is a job with a page."""
MINUTES = 30
DOWN = "requests.exceptions.ConnectTimeout: POST https://api.globex.example/orders: no answer within 10 s"


@pytest.fixture
def letters(shop):
    """Fill a group with more than a page of letters, and leave one of another kind beside it."""
    DeadLetterFactory.create_batch(
        LETTERS, task="shop.tasks.deliver_webhook", queue="webhooks", last_error=DOWN, kwargs="{}"
    )
    return DeadLetterFactory(task="shop.tasks.charge_card", last_error="ValueError: declined")


def assert_decided(page, expect, other):
    """Assert that the page tells the end, that the group is spread over the time, and that nothing else changed."""
    expect(page.locator("#content")).to_contain_text("Succeeded")
    expect(page.locator("#content")).to_contain_text(f'"done": {LETTERS}')
    assert "/finishedjob/" in page.url
    due = Job.objects.filter(task="shop.tasks.deliver_webhook").values_list("ready_at", flat=True)
    assert len(due) == LETTERS
    assert max(due) - min(due) > timedelta(minutes=10)
    assert max(due) < timezone.now() + timedelta(minutes=MINUTES)
    assert DeadLetter.objects.get() == other
    assert LogEntry.objects.filter(change_message__contains="the endpoint is back").count() == LETTERS + 1


def test_group_is_requeued_and_watched(page, expect, letters):
    """By pointer: the overview leads to the causes, those to the decision, and its page shows when it is done."""
    page.goto(address("queue", name="overview"))
    page.get_by_role("link", name="dead letters", exact=True).click()
    page.get_by_role("link", name="By cause").click()
    row = page.get_by_role("row").filter(has_text="deliver_webhook")
    expect(row).to_contain_text(str(LETTERS))
    row.get_by_role("link", name="Requeue…").click()
    expect(page.locator("#content")).to_contain_text(f"{LETTERS} dead letters are selected")
    page.get_by_label("Spread over minutes").fill(str(MINUTES))
    page.get_by_label("Reason").fill("the endpoint is back")
    page.get_by_role("button", name="Yes, requeue").click()

    expect(page.locator("#content")).to_contain_text("Ready")
    page.get_by_label("Refresh").select_option("5")
    with ThreadedWorker(queues=("default",)):
        page.wait_for_url("**/finishedjob/**")

    assert_decided(page, expect, letters)


def test_group_is_requeued_by_keyboard_alone(page, expect, letters):
    """With Tab, Enter and arrows the same: each stop is seen, in the order of the page, and none is a trap."""
    keys = Keyboard(page)
    page.goto(address("deadletter", name="groups"))
    keys.skip_to_content()
    keys.go_to(page.get_by_role("row").filter(has_text="deliver_webhook").get_by_role("link", name="Requeue…"))
    keys.press("Enter")
    expect(page.locator("#content")).to_contain_text(f"{LETTERS} dead letters are selected")
    keys.skip_to_content()
    keys.go_to(page.get_by_label("Spread over minutes"))
    keys.type(str(MINUTES))
    keys.go_to(page.get_by_label("Reason"))
    keys.type("the endpoint is back")
    keys.go_to(page.get_by_role("button", name="Yes, requeue"))
    keys.press("Space")

    expect(page.locator("#content")).to_contain_text("Ready")
    keys.go_to(page.get_by_label("Refresh"))
    keys.press("ArrowDown")
    expect(page.get_by_label("Refresh")).to_have_value("5")
    with ThreadedWorker(queues=("default",)):
        page.wait_for_url("**/finishedjob/**")

    assert_decided(page, expect, letters)


def test_group_is_requeued_without_javascript(open_browser, expect, letters):
    """Scripts only add: a browser that runs none, or is kept from it, does all the same."""
    page = open_browser(java_script_enabled=False)
    page.goto(address("deadletter", name="groups"))
    page.get_by_role("row").filter(has_text="deliver_webhook").locator("summary").click()
    expect(page.get_by_text(DOWN).last).to_be_visible()
    page.get_by_role("row").filter(has_text="deliver_webhook").get_by_role("link", name="Requeue…").click()
    page.get_by_label("Spread over minutes").fill(str(MINUTES))
    page.get_by_label("Reason").fill("the endpoint is back")
    page.get_by_role("button", name="Yes, requeue").click()
    expect(page.locator("#content")).to_contain_text("Ready")
    with ThreadedWorker(queues=("default",)) as worker:
        worker.settle()
    page.reload()

    assert_decided(page, expect, letters)


def test_selection_is_acted_on_without_javascript(open_browser, expect, letters):
    """The list's boxes, its menu of actions, its filters and its search are plain forms."""
    page = open_browser(java_script_enabled=False)
    page.goto(address("deadletter"))
    page.locator("#searchbar").fill("task:shop.tasks.charge_card")
    page.get_by_role("button", name="Search").click()
    page.locator("input[name=_selected_action]").check()
    page.locator("select[name=action]").select_option("discard")
    page.get_by_role("button", name="Run").or_(page.get_by_role("button", name="Go")).click()
    page.get_by_role("button", name="Yes, discard").click()
    expect(page.locator(".errorlist")).to_contain_text("This field is required")
    page.get_by_label("Reason").fill("paid by transfer")
    page.get_by_role("button", name="Yes, discard").click()

    expect(page.get_by_text("1 dead letter was discarded.")).to_be_visible()
    assert not DeadLetter.objects.filter(pk=letters.pk).exists()
