"""The site holds together: links lead somewhere, every page is reached, and the promise is the same everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import DOCS, PAGES, ROOT, prose, read, section

LINK = re.compile(r"\]\(([^)\s]+)\)")
TOCTREE = re.compile(r"^:::\{toctree\}\n(.*?)^:::", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"^```\{image\} \S*/images/(\S+)\n:alt: (.+)\n:class: only-(light|dark)$", re.MULTILINE)
IMAGES = sorted((DOCS / "images").iterdir())
MOST_PICTURE_BYTES, MOST_PICTURES_BYTES = 40 * 1024, 1024 * 1024
MOST_README_LINES = 100


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets, on the site and on code forges alike."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower()).replace(" ", "-")


def anchors(page: str) -> set[str]:
    """Return the anchors of a page."""
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """A link to a page or to a heading finds it; the site's own check does not see the README."""
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        path, _, fragment = target.partition("#")
        linked = (ROOT / page).parent / path if path else ROOT / page
        assert linked.is_file(), target
        assert not fragment or fragment in anchors(linked.resolve().relative_to(ROOT).as_posix()), target


def test_every_page_is_in_the_contents():
    """A page that no table of contents names is found by nobody."""
    listed = {Path("index")}
    for page in PAGES:
        for entries in TOCTREE.findall(read(page)):
            names = [line for line in entries.split() if not line.startswith(":") and not line.isdigit()]
            listed |= {Path(page).parent.relative_to("docs") / name for name in names}

    assert {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")} == listed


def test_the_promise_is_the_same_everywhere():
    """The README and the page on guarantees promise the same, word by word."""
    promise = read("README.md").partition("## The promise")[2].strip().partition("\n\n")[0]

    assert promise.startswith("- A job committed with your transaction is attempted at least once")
    assert promise in read("docs/explanation/guarantees.md")


def test_every_picture_is_shown_in_both_themes():
    """A picture that no page shows is dead weight, and one without a text tells nothing to who cannot see it."""
    shown = [picture for page in PAGES for picture in PICTURE.findall(read(page))]

    assert {name for name, _, _ in shown} == {path.name for path in IMAGES}
    for name, text, theme in shown:
        assert text.strip()
        assert name.endswith(f"-{theme}.webp")


def test_pictures_are_small():
    """Whoever clones the repository or opens a page loads them all."""
    sizes = {path.name: path.stat().st_size for path in IMAGES}

    assert [name for name, size in sizes.items() if size > MOST_PICTURE_BYTES] == []
    assert sum(sizes.values()) <= MOST_PICTURES_BYTES


def test_readme_is_read_in_one_go():
    """What is longer belongs into the documentation."""
    assert len(read("README.md").splitlines()) <= MOST_README_LINES


@pytest.mark.parametrize("heading", ["Try it", "Test it"])
def test_readme_has_one_command_for_each_purpose(heading):
    """A fresh machine needs one line to be copied, and nothing before it."""
    found = re.search(rf"^## {heading}\n(.*?)^## ", read("README.md"), re.DOTALL | re.MULTILINE)[1]

    assert len(re.findall(r"^    \S", found, re.MULTILINE)) == 1


def test_changelog_begins_with_what_is_not_released():
    """A change has a place to be written down before there is a number for it."""
    assert re.findall(r"^## (.+)$", read("docs/changelog.md"), re.MULTILINE)[0] == "Unreleased"


def test_glossary_has_the_words_of_the_states():
    """The words in the admin are the words of the glossary."""
    words = set(re.findall(r"^(\w[\w ]*)$", section("docs/glossary.md", "Glossary", level=1), re.MULTILINE))

    assert {
        "job",
        "task",
        "claim",
        "lease",
        "renew",
        "settle",
        "reap",
        "release",
        "dead letter",
        "lane",
        "due",
    } <= words
