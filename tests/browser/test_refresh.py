"""A page that refreshes itself never takes away what a person is at."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from django_workqueue.models import FinishedJob, Job
from tests.admin.pages import SCREENS
from tests.admin.pages import page as address
from tests.factories import FinishedJobFactory, JobFactory, QueueMinuteFactory

pytestmark = pytest.mark.browser

OVERVIEW = address("queue", name="overview")
IN_USE = {
    "a table is open": (
        "details > summary",
        "click",
        "document.querySelector('details').open = false; document.activeElement.blur()",
    ),
    "a link has the focus": (".workqueue-tiles a", "focus", "document.activeElement.blur()"),
    "text is selected": (".workqueue-tiles strong", "select_text", "getSelection().removeAllRanges()"),
}
HIDE = """hidden => {
    Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture
def page(page):
    """Return a page whose clock stands still until a test moves it on, with a list of what it has read."""
    page.clock.install()
    page.readings = []
    page.on("request", lambda request: request.resource_type == "fetch" and page.readings.append(request.url))
    return page


def choose(page, seconds):
    """Choose how often the page is read again."""
    page.get_by_label("Refresh").select_option(str(seconds))


def ready(page):
    """Return the tile of what is ready."""
    return page.locator(".workqueue-tiles li", has=page.get_by_text("ready", exact=True)).locator("strong")


def look_at_overview(page, expect):
    """Open the overview with one ready job, and let it refresh."""
    QueueMinuteFactory()
    JobFactory()
    page.goto(OVERVIEW)
    expect(ready(page)).to_have_text("1")
    choose(page, 5)


def test_page_is_read_again_only_when_asked(page, expect):
    """Off by default: a page left open must cost the database nothing. The choice holds for the next page."""
    JobFactory()
    page.goto(OVERVIEW)
    page.clock.run_for(120_000)
    assert page.readings == []

    choose(page, 15)
    JobFactory()
    page.clock.run_for(15_000)

    expect(ready(page)).to_have_text("2")
    page.goto(address("queue", name="statistics"))
    expect(page.get_by_label("Refresh")).to_have_value("15")


def test_focus_and_place_are_kept(page, expect):
    """A person who works by keyboard or has scrolled down is not thrown back to the top."""
    page.set_viewport_size({"width": 900, "height": 400})
    look_at_overview(page, expect)
    page.get_by_label("Refresh").focus()
    page.evaluate("scrollTo(0, 250)")
    JobFactory()

    page.clock.run_for(5_000)

    expect(ready(page)).to_have_text("2")
    assert page.evaluate("[document.activeElement.tagName, scrollY]") == ["SELECT", 250]


@pytest.mark.parametrize("reason", IN_USE)
def test_page_in_use_is_left_alone(page, expect, reason):
    """What somebody reads, is at or copies stays under the eye, and the page goes on when they are done."""
    selector, act, undo = IN_USE[reason]
    look_at_overview(page, expect)
    getattr(page.locator(selector).first, act)()
    JobFactory()

    page.clock.run_for(30_000)
    assert page.readings == []

    page.evaluate(undo)
    page.clock.run_for(5_000)
    expect(ready(page)).to_have_text("2")


def test_hidden_tab_reads_nothing_and_is_fresh_when_shown(page, expect):
    """Tabs left open over night must not load the database; one that comes back must not show what was."""
    look_at_overview(page, expect)
    page.evaluate(HIDE, True)
    JobFactory()

    page.clock.run_for(600_000)
    assert page.readings == []

    page.evaluate(HIDE, False)
    expect(ready(page)).to_have_text("2")


def test_page_of_a_job_follows_it_to_its_end(page, expect):
    """A job that ends moves to another table, and whoever watches it goes with it."""
    job = JobFactory(leased=True)
    page.goto(address("job", job.pk))
    choose(page, 5)
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).delete()
        FinishedJobFactory(id=job.pk)

    page.clock.run_for(5_000)

    page.wait_for_url(f"**{address('finishedjob', job.pk)}")
    expect(page.locator("#content")).to_contain_text("Succeeded")
    assert FinishedJob.objects.filter(pk=job.pk).exists()


def test_page_that_cannot_be_read_says_so(page, expect):
    """Numbers that no longer change would pass for calm; after a new login the page goes on."""
    look_at_overview(page, expect)
    trouble = page.get_by_text("This page could not be read again")
    [session], cookies = Session.objects.all(), page.context.cookies()
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))

    page.clock.run_for(5_000)
    expect(trouble).to_be_visible()
    expect(ready(page)).to_have_text("1")

    session.save()
    page.context.add_cookies(cookies)
    page.clock.run_for(5_000)
    expect(trouble).to_be_hidden()


def test_buttons_to_copy_are_there_after_a_refresh(page, expect):
    """What scripts have added belongs to the page that is replaced: it is added anew, and once."""
    page.goto(address("job", JobFactory(leased=True).pk))
    buttons = page.locator(".workqueue-copy")
    count = buttons.count()
    assert count
    choose(page, 5)
    page.evaluate("document.querySelector('#workqueue-main fieldset').remove()")

    page.clock.run_for(5_000)

    expect(page.locator("#workqueue-main fieldset").first).to_be_visible()
    expect(buttons).to_have_count(count)


def test_only_what_moves_by_itself_refreshes(page, expect):
    """A form that is being filled in must not be read again."""
    for model in ("job", "worker", "lease", "workflow"):
        page.goto(address(model, SCREENS[model]().pk))
        expect(page.get_by_label("Refresh")).to_be_visible()
    for model in ("finishedjob", "deadletter", "schedule"):
        page.goto(address(model, SCREENS[model]().pk))
        expect(page.get_by_label("Refresh")).to_have_count(0)
