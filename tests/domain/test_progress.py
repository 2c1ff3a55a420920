"""How far a running job says that it is."""

from __future__ import annotations

import math

import pytest

from django_workqueue.domain.progress import MOST_TEXT, Progress
from django_workqueue.exceptions import InvalidJobError


@pytest.mark.parametrize(
    ("progress", "percent", "words"),
    [
        (Progress(3, 10, "rows"), 30, "3 / 10 (30%) rows"),
        (Progress(2.5, 10), 25, "2.5 / 10 (25%)"),
        (Progress(999, 1000), 99, "999 / 1000 (99%)"),
        (Progress(12, 10), 100, "12 / 10 (100%)"),
        (Progress(3), None, "3"),
        (Progress(0, 0, "nothing"), None, "0 / 0 nothing"),
    ],
)
def test_progress_is_told_in_words(progress, percent, words):
    """A share where the total is known; done only when it is."""
    assert (progress.percent, str(progress)) == (percent, words)


def test_progress_comes_back_as_it_was_stored():
    """Whatever its text holds: it is stored in ASCII."""
    progress = Progress(1, 2, 'a "ü" \x00 \ud800')

    assert progress.encode().isascii()
    assert Progress.decode(progress.encode()) == progress


def test_long_text_is_cut():
    """A row is no log."""
    decoded = Progress.decode(Progress(1, text="x" * 1000).encode())

    assert decoded is not None
    assert (len(decoded.text), decoded.text[-1]) == (MOST_TEXT, "…")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((-1,), "done"),
        ((math.nan,), "done"),
        ((math.inf,), "done"),
        (("3",), "done"),
        ((True,), "done"),
        ((None,), "done"),
        ((1, -1), "total"),
        ((1, "10"), "total"),
        ((1, 2, 3), "text"),
    ],
)
def test_what_is_no_progress_is_refused_by_name(given, name):
    """A slip is found where it is made."""
    with pytest.raises(InvalidJobError, match=f"progress: {name} is"):
        Progress(*given).encode()


@pytest.mark.parametrize("stored", ["", "{broken", "[]", "{}", '{"done":"x"}', '{"done":1,"colour":2}', "7"])
def test_what_cannot_be_read_is_nothing(stored):
    """A column that somebody else has written."""
    assert Progress.decode(stored) is None
