"""Reading the pages of the documentation: their blocks of code, headings and tables."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*DOCS.rglob("*.md"), ROOT / "README.md"])

FENCE = re.compile(r"^(`{3,})(?:\{code-block\} ?)?(\w*)[^\n]*\n(.*?)^\1`*$", re.DOTALL | re.MULTILINE)
OPTIONS = re.compile(r"((?::[\w-]+:[^\n]*\n)*)(.*)", re.DOTALL)
CAPTION = re.compile(r"^:caption: (.*)$", re.MULTILINE)
FILE_COMMENT = re.compile(r"# (\S+\.py)\n")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its caption and its text."""

    language: str
    caption: str
    text: str

    @property
    def file(self) -> str:
        """The file that the caption names, "" when there is none."""
        return self.caption.partition(" ")[0]

    @property
    def remark(self) -> str:
        """What the caption says in brackets after the file's name."""
        return self.caption.partition(" ")[2].strip("()")


def read(page: str) -> str:
    """Return the text of a page, which is named by its path in the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, *languages: str) -> Iterator[Block]:
    """Yield the page's blocks in these languages, in order; all of them when none is given."""
    for _, language, content in FENCE.findall(read(page)):
        head, text = OPTIONS.match(content).groups()
        named = CAPTION.search(head) or FILE_COMMENT.match(text)
        if not languages or language in languages:
            yield Block(language, named[1] if named else "", text.strip("\n") + "\n")


def prose(page: str) -> str:
    """Return the page without its blocks of code."""
    return FENCE.sub("", read(page))


def headings(page: str, level: int = 2) -> list[str]:
    """Return the page's headings of one level, without the marks of code."""
    found = re.findall(rf"^{'#' * level} (.+)$", prose(page), re.MULTILINE)
    return [heading.replace("`", "").strip() for heading in found]


def section(page: str, heading: str, level: int = 2) -> str:
    """Return what stands under a heading, down to the next one of its level or above."""
    text = prose(page).replace("`", "")
    match = re.search(
        rf"^{'#' * level} {re.escape(heading)}\s*\n(.*?)(?=^#{{1,{level}}} |\Z)", text, re.DOTALL | re.MULTILINE
    )
    assert match, f"{page} has no heading {heading!r}"
    return match[1]


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row in ``text``, without the marks of code; heads and rules are left out."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    found = [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in lines]
    rules = [number for number, cells in enumerate(found) if all(set(cell) <= set("-: ") for cell in cells)]
    left_out = {number - offset for number in rules for offset in (0, 1)}
    return [cells for number, cells in enumerate(found) if number not in left_out]


def matches(want: str, got: str) -> bool:
    """Whether output is as a page shows it; "..." stands for anything."""
    return doctest.OutputChecker().check_output(want, got, FLAGS)
