"""How values are told to people: ages in words, states as text, stored text escaped and bounded."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from django.contrib import admin
from django.utils import timezone
from django.utils.html import format_html
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..models.base import BY_LENGTH

TEXT_LIMIT = 20_000
"""Characters of one stored text on a page."""
LINE_LIMIT = 80
"""Characters of one stored text in a cell of a list."""

DEPTH_LIMIT = 50
"""Brackets within brackets that are spread out: indenting multiplies the size of what lies inside."""

_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}

Column = Callable[[Any, Any], str]
"""A method of a ModelAdmin that shows one column of a row."""


def age(moment: datetime | None, now: datetime) -> str:
    """Return ``moment`` as seen from ``now``, in words, with the full time as the title; a dash for None."""
    if moment is None:
        return "-"
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    full = f"{local:%Y-%m-%d %H:%M:%S %Z}".strip()
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), full, distance(moment, now))


def distance(moment: datetime, now: datetime) -> str:
    """Return how far ``moment`` lies from ``now``: "5 seconds ago", "in 2 hours, 3 minutes"."""
    seconds = round((now - moment).total_seconds())
    if abs(seconds) < 60:
        span = ngettext("%(count)d second", "%(count)d seconds", abs(seconds)) % {"count": abs(seconds)}
    else:
        span = timesince(moment, now) if seconds > 0 else timeuntil(moment, now)
    return (_("%(span)s ago") if seconds >= 0 else _("in %(span)s")) % {"span": span}


def duration(span: timedelta) -> str:
    """Return a length of time: "12 ms", "3.4 s", "2 min 5 s", "1 h 12 min"."""
    seconds = span.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def coloured(kind: str, words: str) -> str:
    """Return how something stands: words that say it all, and a colour for ``kind``: good, idle or bad."""
    return format_html('<span class="workqueue-standing workqueue-is-{}">{}</span>', kind, words)


def line(text: str) -> str:
    """Return the first line of ``text``, cut to the width of a cell."""
    first = text.strip().partition("\n")[0]
    return first if len(first) <= LINE_LIMIT else first[: LINE_LIMIT - 1] + "…"


def bounded(text: str, *, keep_end: bool = False) -> str:
    """Return ``text`` cut to TEXT_LIMIT, saying how much is left out. ``keep_end`` cuts the beginning off."""
    excess = len(text) - TEXT_LIMIT
    if excess <= 0:
        return text
    note = ngettext("(%(count)d character left out)", "(%(count)d characters left out)", excess) % {"count": excess}
    return f"{note}\n{text[excess:]}" if keep_end else f"{text[:TEXT_LIMIT]}\n{note}"


def pretty(text: str) -> str:
    """
    Return JSON ``text`` spread over lines.

    What is long or deep, is no JSON, or cannot be sent as UTF-8, stays as it is stored.
    """
    if len(text) > TEXT_LIMIT or _depth(text) > DEPTH_LIMIT:
        return text
    try:
        spread = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
        spread.encode()
    except ValueError:
        return text
    return spread


def _depth(text: str) -> int:
    """Return how deep the brackets of ``text`` go, counting those inside strings as well."""
    return max(accumulate(_STEPS.get(character, 0) for character in text), default=0)


def preformatted(text: str) -> str:
    """Return ``text``, escaped and bounded, as an element that keeps its lines; a dash when it is empty."""
    if not text:
        return "-"
    return format_html('<pre class="workqueue-text" data-copy data-label="{}">{}</pre>', _("Copy"), bounded(text))


def name_of(user: Any) -> str:
    """Return the name of a user as rows keep it: a site that takes its users from elsewhere may have stranger names."""
    name = "".join(each if each.isprintable() else "?" for each in user.get_username())
    return name[:BY_LENGTH] or str(user.pk)


def read_at(row: Any) -> datetime:
    """Return the time at which ``row`` was read, by the clock of its database."""
    moment: datetime = row.read_at
    return moment


def when(column: str, description: Any) -> Column:
    """Return a method that shows the time in ``column`` as an age."""

    @admin.display(description=description)
    def show(_admin: Any, row: Any) -> str:
        return age(getattr(row, column), read_at(row))

    return show


def text_of(column: str, description: Any) -> Column:
    """Return a method that shows the stored text in ``column`` with its lines."""

    @admin.display(description=description)
    def show(_admin: Any, row: Any) -> str:
        return preformatted(getattr(row, column))

    return show
