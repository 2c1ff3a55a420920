"""What the demonstration prints: progress while it runs, the books at its end, and where to look next."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from django.conf import settings

from .books import Books

Say = Callable[[str], object]

ADMIN_URL = "http://127.0.0.1:8000/admin/"
WEBHOOK_URL = "http://127.0.0.1:8000/webhook/"


def progress_line(seconds: float, counts: dict[str, int]) -> str:
    """Return one line of progress, in columns."""
    cells = "   ".join(f"{name} {count:>3}" for name, count in counts.items())
    return f"  {seconds:4.0f} s   {cells}"


def book_lines(books: Books) -> Iterator[str]:
    """Yield the books, one account a line."""
    for name, count, remark in _accounts(books):
        yield f"  {name:<22} {count:>5}   {remark}".rstrip()


def _accounts(books: Books) -> Iterator[tuple[str, int, str]]:
    yield "orders accepted", len(books.accepted), "stored together with their two jobs"
    yield (
        "orders rolled back",
        books.declined,
        "card declined after both jobs were enqueued; nothing of them may remain",
    )
    yield "jobs enqueued", len(books.promised), ""
    yield "  done", len(books.done), ""
    yield (
        "  dead",
        len(books.dead),
        "dead letters: their shop's server answers 400, so trying again is pointless",
    )
    yield "  unfinished", len(books.live), ""
    yield "  lost", len(books.lost), "must be 0"
    yield (
        "attempts retried",
        books.retried.total(),
        "the shop's server was busy (503) and asked for a second's patience",
    )
    yield (
        "attempts reaped",
        books.reaped.total(),
        f"claims that lapsed with their lease, {len(books.killed_with)} of them the killed worker's",
    )
    yield "e-mails", books.mails.total(), _against(len(books.accepted), books.mails.total())
    yield (
        "webhooks delivered",
        books.delivered.total(),
        _against(len(books.deliverable), books.delivered.total()),
    )
    yield (
        "repeated effects",
        books.repeats.total(),
        "allowed for reaped jobs alone: at least once, not exactly once",
    )


def _against(orders: int, effects: int) -> str:
    return f"for {orders} orders" + (f", {effects - orders} of them twice" if effects > orders else "")


def next_lines(refusing: str, *, has_login: bool) -> Iterator[str]:
    """Yield how to look at the dead letters, and how to bring them back."""
    manage = f"{_short(sys.executable)} {_short(settings.BASE_DIR / 'manage.py')}"
    if os.environ.get("DATABASE_URL"):
        yield "  (each command with the DATABASE_URL that is set now)"
    if not has_login:
        yield f"  {manage} createsuperuser"
    yield f"  {manage} runserver"
    yield f"  {ADMIN_URL}django_workqueue/deadletter/" + ("   user: demo   password: demo" if has_login else "")
    yield f"To bring them back: give the shop {refusing!r} a server that works, {WEBHOOK_URL}, at"
    yield f"  {ADMIN_URL}shop/shop/"
    yield "requeue the dead letters in the admin, and let a worker deliver them:"
    yield f"  {manage} runworkers --burst"
    yield f"The e-mails are files in {_short(settings.OUTBOX)}."


def _short(path: str | Path) -> str:
    """Return ``path`` as one would type it here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
