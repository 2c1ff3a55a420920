"""Nothing is inline, nothing comes from elsewhere and nothing fails: the browser has no complaint about any page."""

from __future__ import annotations

import pytest

from .places import addresses
from .scene import play

pytestmark = pytest.mark.browser


def test_no_page_breaks_the_policy(page, shop, admin_client):
    """With default-src 'self' a browser drops what is inline, and says so; an unhandled error it tells as well."""
    play()
    found = addresses(admin_client)

    assert {"index", "app", "queue_overview", "deadletter_groups", "job_change", "schedule_add"} <= found.keys()
    for address in found.values():
        assert page.goto(address).status == 200
        assert page.title()


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
