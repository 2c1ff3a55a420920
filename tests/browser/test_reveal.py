"""Masked values in a browser: hidden, shown on one page when asked for, and hidden again."""

from __future__ import annotations

import json

import pytest

from tests.admin.pages import page as address_of
from tests.factories import JobFactory

from .browsing import NARROW

pytestmark = pytest.mark.browser

SECRET = "secret-17"


@pytest.fixture
def job(settings, transactional_db):
    """Make a job with a masked argument."""
    settings.WORKQUEUE = {"MASK": ["token"]}
    return JobFactory(task="tests.samples.sign_in", args=json.dumps(["olga", SECRET]), kwargs="{}")


@pytest.mark.parametrize("options", [{}, NARROW], ids=["desk", "telephone"])
def test_value_is_revealed_by_the_keyboard_and_hidden_on_the_next_page(open_browser, job, options):
    """The button is a form among links: it can be reached, pressed and read as they can."""
    page = open_browser(**options)
    page.goto(address_of("job", job.pk))
    assert SECRET not in page.content()

    button = page.get_by_role("button", name="Reveal masked values")
    button.focus()
    button.press("Enter")
    page.get_by_text(SECRET).wait_for()
    assert page.get_by_role("button", name="Reveal masked values").count() == 0

    # Nothing reads this page again by itself: the values are on one answer.
    assert page.get_by_text("Refresh").count() == 0

    page.get_by_role("link", name="Hide masked values").click()
    button.wait_for()
    assert SECRET not in page.content()
