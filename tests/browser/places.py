"""Every page of ours in the admin, found in its addresses, so that a new one is looked at too."""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, reverse

APP = "django_workqueue"


def addresses(client: Client) -> dict[str, str]:
    """Return the pages that ``client`` may open, by their names: with one row for those that are about a row."""
    found = {"index": reverse("admin:index"), "app": reverse("admin:app_list", args=(APP,))}
    found |= {name.removeprefix(f"{APP}_"): address for name, address in _candidates()}
    return {name: address for name, address in found.items() if _is_page(client, address)}


def _candidates() -> Iterator[tuple[str, str]]:
    for pattern in _patterns(admin.site.get_urls()):
        for arguments in ((), _first(pattern.name)):
            try:
                yield pattern.name, reverse(f"admin:{pattern.name}", args=arguments)
            except NoReverseMatch:
                continue


def _patterns(entries: list) -> Iterator[URLPattern]:
    for entry in entries:
        if hasattr(entry, "url_patterns"):
            yield from _patterns(entry.url_patterns)
        elif (entry.name or "").startswith(f"{APP}_"):
            yield entry


def _first(name: str) -> tuple:
    """Return the key of the newest row of the model in the name of a page."""
    rows = apps.get_model(APP, name.removeprefix(f"{APP}_").partition("_")[0])._default_manager
    return tuple(rows.order_by("-pk").values_list("pk", flat=True)[:1])


def _is_page(client: Client, address: str) -> bool:
    """Whether it is HTML for this person: not refused, nor a file."""
    answer = client.get(address)
    assert answer.status_code < 500, address
    return answer.status_code == 200 and answer["Content-Type"].startswith("text/html") and not answer.streaming
