"""
The pictures of the documentation: every screen, light and dark, as it is now.

``WORKQUEUE_PICTURES=docs/images pytest tests/browser/test_pictures.py`` writes them anew; the path begins at the
root of the repository. They are WebP, which Chromium itself makes: nothing else is needed.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin

from django_workqueue.domain.fingerprints import fingerprint
from django_workqueue.models import DeadLetter, FinishedJob, Job, Schedule, Worker, Workflow
from tests.admin.pages import page as address

from .scene import REFUSED, keep_alive, play

pytestmark = pytest.mark.browser

WIDTH, HEIGHT = 1280, 770
"""Of what is shown at most: the list or the form, without the sidebar."""
SCALE = 0.8
"""Of the picture."""
QUALITY = 44
ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs" / "images"
THEMES = ("light", "dark")

TAKE = {"format": "webp", "quality": QUALITY, "captureBeyondViewport": True}
SPAN = """part => {
    document.getAnimations().forEach(animation => animation.finish());
    const box = element => element.getBoundingClientRect();
    const ends = [...document.querySelectorAll('#content, #changelist-filter')].map(each => box(each).bottom);
    const top = part ? box(document.getElementById(part)).top - 10 : 0;
    return [top + scrollY, Math.max(...ends) + scrollY + 10];
}"""
"""From where to where the page has content, or what of it begins with a part."""


def group() -> str:
    """Return the filter of the list for the largest group of dead letters."""
    return f"?fingerprint={fingerprint('shop.tasks.deliver_webhook', REFUSED)}"


def screens() -> dict[str, str]:
    """Return the address of each picture's page in the scene, by its name; with the part where the picture begins."""
    running = Job.objects.get(task="shop.tasks.import_catalogue")
    letter = DeadLetter.objects.filter(task="shop.tasks.deliver_webhook").first()
    album = FinishedJob.objects.get(task="shop.tasks.make_album")
    flow = Workflow.objects.get(done__lt=3)
    return {
        "overview": address("queue", name="overview"),
        "statistics": address("queue", name="statistics", query="?range=6h"),
        "jobs": address("job"),
        "job": address("job", running.pk),
        "job-cancel": address("job", running.pk, name="cancel"),
        "causes": address("deadletter", name="groups"),
        "dead-letters": address("deadletter"),
        "dead-letter": address("deadletter", letter.pk),
        "attempts": address("deadletter", letter.pk) + "#workqueue-history",
        "requeue": address("deadletter", name="all_requeue", query=group()),
        "finished-jobs": address("finishedjob"),
        "finished-job": address("finishedjob", album.pk),
        "queues": address("queue"),
        "queue": address("queue", "webhooks"),
        "workers": address("worker"),
        "worker": address("worker", Worker.objects.get(name="batch1").pk),
        "leases": address("lease"),
        "lease": address("lease", running.lease_id),
        "pauses": address("pause"),
        "schedules": address("schedule"),
        "schedule": address("schedule", Schedule.objects.get(name="nightly report").pk),
        "workflows": address("workflow"),
        "workflow": address("workflow", flow.pk) + "#workqueue-members",
    }


def take(page: Any, path: Path, part: str) -> None:
    """Write what ``page`` shows, from its top or that of ``part`` to the end of its content."""
    top, bottom = page.evaluate(SPAN, part)
    clip = {"x": 0, "y": top, "width": WIDTH, "height": min(HEIGHT, bottom - top), "scale": SCALE}
    answer = page.context.new_cdp_session(page).send("Page.captureScreenshot", {**TAKE, "clip": clip})
    path.write_bytes(base64.b64decode(answer["data"]))


def test_every_screen_has_its_pictures(open_browser, shop, tmp_path, monkeypatch):
    """A screen without a picture is a screen that nobody has looked at, and users do not know."""
    folder = ROOT / os.environ["WORKQUEUE_PICTURES"] if "WORKQUEUE_PICTURES" in os.environ else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(admin.site, "site_header", "Shop administration")
    play()
    page = open_browser(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(address("queue", name="overview"))
    page.evaluate("localStorage.setItem('django.admin.navSidebarIsOpen', 'false')")

    names = screens()
    for name, where in names.items():
        keep_alive()
        place, _, part = where.partition("#")
        assert page.goto(place).status == 200, place
        for theme in THEMES if folder == KEPT else THEMES[:1]:
            page.emulate_media(color_scheme=theme)
            take(page, folder / f"{name}-{theme}.webp", part)

    kept = {path.name for path in KEPT.glob("*.webp")}
    assert kept == {f"{name}-{theme}.webp" for name in names for theme in THEMES}
    assert {path.name for path in folder.glob("*.webp")} <= kept
