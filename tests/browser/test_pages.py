"""Every page is one that the browser has no complaint about, that can be read, and that fits a telephone."""

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
KNOWN = {"index", "app", "queue_overview", "deadletter_groups", "job_change", "schedule_add"}


def test_pages_keep_the_policy_and_stand_out_in_both_themes(page, shop, admin_client):
    """
    With default-src 'self' a browser drops what is inline, and says so; an unhandled error it tells as well.

    Of every text, at least 4.5 to 1, as WCAG asks for: what cannot be read at three in the morning is not there. Both
    are looked for at once, as opening every page takes its time.
    """
    play()
    found = addresses(admin_client)
    faults = {}

    for name, address in found.items():
        assert page.goto(address).status == 200
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            faults[name, theme] = page.evaluate(LOOKS, "contrast")

    assert found.keys() >= KNOWN
    assert {place: found for place, found in faults.items() if found} == {}


def test_pages_fit_a_telephone(open_browser, shop, admin_client):
    """Whoever is called at night has one at hand: nothing is cut off, and a finger hits what is ours."""
    play()
    page = open_browser(**NARROW)
    faults = {}

    for name, address in addresses(admin_client).items():
        if not name.endswith(STOCK):
            page.goto(address)
            faults[name] = page.evaluate(LOOKS, "width") + page.evaluate(LOOKS, "targets")

    assert {place: found for place, found in faults.items() if found} == {}


def test_the_witness_hears_what_breaks_the_policy(page, witness, live_server):
    """The other tests rely on it: a violation, an error and a dialog are heard."""
    page.goto("/admin/")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')")
    page.evaluate("setTimeout(() => { throw new Error('unhandled') })")
    page.evaluate("alert('said')")
    page.wait_for_function("() => true")

    heard = "\n".join(witness.complaints)
    witness.complaints.clear()

    assert "policy: script-src-attr refuses inline" in heard
    assert "error: unhandled" in heard
    assert "dialog: said" in heard
