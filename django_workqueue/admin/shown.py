"""How a job is told in a few characters."""

from __future__ import annotations

import json
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from ..models.base import JobColumns
from .revealing import veil_of

PREVIEW_LENGTH = 60
"""Characters of a job's arguments in a cell of a list."""
PREVIEWED = 5_000
"""Characters of stored arguments up to which they are looked into for a preview: a list shows many."""


def preview(row: JobColumns) -> str:
    """Return the beginning of a job's arguments, as they would stand in a call: ``17, copy=true``."""
    size = len(row.args) + len(row.kwargs)
    if size > PREVIEWED:
        return _("%(size)d characters") % {"size": size}
    return Truncator(_call(row)).chars(PREVIEW_LENGTH)


def _call(row: JobColumns) -> str:
    columns = veil_of(row).columns
    args, kwargs = columns["args"], columns["kwargs"]
    try:
        parts = [_short(each) for each in json.loads(args)]
        return ", ".join(parts + [f"{name}={_short(each)}" for name, each in json.loads(kwargs).items()])
    except (ValueError, AttributeError, TypeError, RecursionError):
        # It cannot be decoded: that is why somebody looks.
        return f"{args} {kwargs}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate is no text of a page
        return json.dumps(value)
    return text


def short_id(pk: Any) -> str:
    """Return the ends of an id: the first tells its time, the last tells it from its neighbours."""
    text = str(pk)
    return format_html(
        '<code title="{}" data-copy="{}" data-label="{}">{}…{}</code>', text, text, _("Copy"), *_ends(text)
    )


def _ends(text: str) -> tuple[str, str]:
    return text[:8], text[-4:]


def short_task(path: str) -> str:
    """Return the last part of a task's dotted path, with the whole as its title."""
    return format_html('<span title="{}">{}</span>', path, path.rpartition(".")[2] or path)


def pill(word: str, label: Any) -> str:
    """Return a state in words, with a colour beside: by colour alone not everybody could tell it."""
    return format_html('<span class="workqueue-state workqueue-{}">{}</span>', word, label)


def stacked(first: Any, *others: Any) -> str:
    """Return what stands in a cell, and beneath it, quieter, whatever else there is."""
    lines = format_html_join("", '<br><span class="workqueue-quiet">{}</span>', ((each,) for each in others if each))
    return format_html("{}{}", first, lines)
