"""A browser that is logged in, and a shop whose tasks the queue can find."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from .browsing import FLAGS, PATIENCE_MS, REMEDY, Witness, program
from .traffic import Traffic

STAGE = Path(__file__).with_name("stage")


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """
    Yield the browser; skip where there is none.

    For this package alone: while Playwright is open its event loop runs in this thread, where no other may be run,
    and Django would refuse every statement.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="No Playwright: pip install playwright")
    path = program()
    if path is None:
        pytest.skip(REMEDY)
    with pytest.MonkeyPatch.context() as patch, sync_api.sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Put the package ``shop`` on the path, and yield its tasks."""
    monkeypatch.syspath_prepend(STAGE)
    from shop import tasks  # noqa: PLC0415 - on the path from here on

    yield tasks
    for name in ("shop", "shop.tasks"):
        sys.modules.pop(name, None)


@pytest.fixture
def witness() -> Iterator[Witness]:
    """Yield who hears what the browser complains about, and fail a test in which it had a reason to."""
    witness = Witness()
    yield witness
    assert witness.complaints == []


@pytest.fixture
def open_browser(
    chromium: Any, witness: Witness, transactional_db: None, live_server: Any, admin_user: Any
) -> Iterator[Callable[..., Any]]:
    """
    Return a function that opens the admin's site for a superuser and returns a page; options as for Playwright.

    All are closed before the tables are emptied: a page that reads on would find nothing to read.
    """
    contexts = []

    def opened(**options: Any) -> Any:
        context = chromium.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        witness.watch(context)
        # A browser asks for it by itself; no project has to have one.
        context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        client = Client()
        client.force_login(admin_user)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])
        context.set_default_timeout(PATIENCE_MS)
        return context.new_page()

    with Traffic() as traffic:
        yield opened
        for context in contexts:
            for page in context.pages:
                # Ends what it reads and what it would read later.
                page.goto("about:blank")
            context.close()
        traffic.calm()


@pytest.fixture
def page(open_browser: Callable[..., Any]) -> Any:
    """Return a page of a browser as most people have it."""
    return open_browser()


@pytest.fixture
def expect(chromium: Any) -> Any:
    """Return Playwright's assertions, which wait. Imported where there is a browser: it may not be installed."""
    from playwright.sync_api import expect  # noqa: PLC0415 - see above

    expect.set_options(timeout=PATIENCE_MS)
    return expect
