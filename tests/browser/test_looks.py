"""The pages are legible in both themes, and usable on a telephone."""

from __future__ import annotations

from pathlib import Path

import pytest

from .browsing import NARROW
from .places import addresses
from .scene import play

pytestmark = pytest.mark.browser

LOOKS = Path(__file__).with_name("looks.js").read_text()
STOCK = ("_history", "_delete")
"""Endings of the names of pages that are Django's own."""


def faults(page, client, look):
    """Return what ``look`` finds wrong, by page; it is called with the page as it is open."""
    play()
    found = {}
    for name, address in addresses(client).items():
        if not name.endswith(STOCK):
            page.goto(address)
            found[name] = look(page)
    return {name: faults for name, faults in found.items() if faults}


def test_texts_stand_out_in_both_themes(page, shop, admin_client):
    """At least 4.5 to 1, as WCAG asks for: what cannot be read at three in the morning is not there."""

    def look(page):
        found = []
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            found += [f"{theme}: {fault}" for fault in page.evaluate(LOOKS, "contrast")]
        return found

    assert faults(page, admin_client, look) == {}


def test_pages_fit_a_telephone(open_browser, shop, admin_client):
    """Whoever is called at night has one at hand: nothing is cut off, and a finger hits what is ours."""
    page = open_browser(**NARROW)

    assert (
        faults(page, admin_client, lambda page: page.evaluate(LOOKS, "width") + page.evaluate(LOOKS, "targets")) == {}
    )
