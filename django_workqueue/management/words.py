"""How the commands tell things to people: tables, spans of time, times."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from datetime import datetime
from textwrap import TextWrapper
from typing import Any

WIDTH = 80
"""Columns that a terminal has."""

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))


def table(rows: Sequence[Sequence[str]], *, numbers: Container[int] = (), gap: int = 2) -> Iterator[str]:
    """
    Yield ``rows`` as lines with their cells below each other; the columns in ``numbers`` end below each other.

    A first cell that leaves no room for the others has a line of its own: names are to be copied, and are not cut.
    """
    names, *others = zip(*rows, strict=True)
    widths = [max(map(len, column)) for column in others]
    room = max(WIDTH - sum(widths) - gap * len(widths), len(names[0]))
    width = max(len(name) for name in names if len(name) <= room)
    for name, *cells in rows:
        if len(name) > room:
            yield name
            name = ""  # noqa: PLW2901 - it has been told
        padded = [
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True), 1)
        ]
        yield (" " * gap).join([name.ljust(width), *padded]).rstrip()


def folded(text: str, *, first: str = "    ", indent: str = "    ") -> list[str]:
    """Return ``text`` in lines for a terminal, words that are longer than those whole."""
    wrapper = TextWrapper(WIDTH, first, indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(text)


def span(seconds: float) -> str:
    """Return a length of time in whole ones of its largest unit, as the options take it: "8s", "5m", "3h", "12d"."""
    for unit, name in _UNITS:
        if abs(seconds) >= unit:
            return f"{int(seconds / unit)}{name}"
    return f"{seconds:.0f}s"


def since(text: str | None, now: str) -> str:
    """Return how long a time of a report lies before ``now``: "5m ago", "in 3h"; "-" where there is none."""
    if text is None:
        return "-"
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(text)).total_seconds()
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"


def cut(text: str, most: int) -> str:
    """Return ``text`` in at most ``most`` characters, with a mark where some are left out."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def sentence(words: str) -> str:
    """Return ``words`` as a sentence."""
    return f"{words[0].upper()}{words[1:]}."


def printable(line: str) -> str:
    """Return ``line`` with its control characters written out: what a job holds must not steer a terminal."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


def harmless(text: str) -> str:
    """Return ``text`` with its lines kept, and its other control characters written out."""
    return "\n".join(map(printable, text.split("\n")))


def as_json(report: Any) -> str:
    """Return a report for programs. It may be read at a terminal too, and JSON lets one control character through."""
    return json.dumps(report).replace("\x7f", "\\u007f")


def written(moment: datetime | None) -> str | None:
    """Return a time as reports hold it."""
    return None if moment is None else moment.isoformat()
