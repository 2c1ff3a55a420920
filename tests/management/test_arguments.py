"""Converters of command line arguments."""

from __future__ import annotations

import argparse
from datetime import timedelta

import pytest

from django_workqueue.management import arguments


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5s", 1.5), ("15m", 900), ("24h", 86400), ("7d", 604800), ("0", 0), (" 5 ", 5)],
)
def test_durations_have_units(text, seconds):
    """Plain numbers are seconds."""
    assert arguments.duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "-5", "5x", "1h30m", "5 s", "nan", "1e3"])
def test_text_that_is_no_duration_is_told_how_to_write_one(text):
    """The value is quoted."""
    with pytest.raises(argparse.ArgumentTypeError, match="Write seconds"):
        arguments.duration(text)


def test_ids_of_jobs_are_told_from_other_texts():
    """Before anything is done."""
    assert str(arguments.job_id("0190c2f4-8a52-7c11-9f4e-2b8b6a4d9e10")) == "0190c2f4-8a52-7c11-9f4e-2b8b6a4d9e10"
    with pytest.raises(argparse.ArgumentTypeError, match="'17' is not the id of a job"):
        arguments.job_id("17")


def test_duration_beyond_all_measure_is_refused():
    """In a sentence, not in a traceback."""
    with pytest.raises(argparse.ArgumentTypeError, match="longer than any clock"):
        arguments.duration("9" * 20 + "d")


@pytest.mark.parametrize(
    ("text", "names"),
    [("a", ("a",)), ("a, b,c", ("a", "b", "c")), ("a,,b,", ("a", "b")), ("mail/", ("mail",)), ("", ()), (" , ", ())],
)
def test_names_have_commas_between(text, names):
    """Blanks and slashes at the end do not count."""
    assert arguments.names(text) == names
