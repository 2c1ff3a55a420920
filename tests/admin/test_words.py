"""Ages, lengths of time and stored text, as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils.safestring import SafeString

from django_workqueue.admin import words

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(), "0 seconds ago"),
        (timedelta(seconds=1), "1 second ago"),
        (timedelta(seconds=59), "59 seconds ago"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(hours=1, minutes=5), "1 hour, 5 minutes ago"),
        (timedelta(seconds=-5), "in 5 seconds"),
        (timedelta(days=-2), "in 2 days"),
    ],
)
def test_distance_is_told_in_words(span, text):
    """A list of jobs is read for "how long ago", not for dates; a due time lies ahead."""
    assert words.distance(NOW - span, NOW).replace("\xa0", " ") == text


def test_age_has_the_full_time_as_its_title(settings):
    """Words are for reading; comparing with a log needs the second and the zone."""
    settings.TIME_ZONE = "Europe/London"

    shown = words.age(NOW, NOW)

    assert 'title="2026-03-01 12:00:00 GMT"' in shown
    assert 'datetime="2026-03-01T12:00:00+00:00"' in shown
    assert words.age(None, NOW) == "-"


def test_age_without_time_zones():
    """A project with USE_TZ = False stores naive times, and sees them as they are."""
    naive = NOW.replace(tzinfo=None)

    assert 'title="2026-03-01 12:00:00"' in words.age(naive, naive)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.012, "12 ms"), (3.44, "3.4 s"), (125, "2 min 5 s"), (3599.9, "1 h 0 min"), (4320, "1 h 12 min")],
)
def test_duration_has_two_units_at_most(seconds, text):
    """A run is told with the precision that its length is worth."""
    assert words.duration(timedelta(seconds=seconds)) == text


def test_line_is_the_beginning_of_the_text():
    """A cell holds one short line, whatever an exception said."""
    assert words.line("first\nsecond") == "first"
    assert words.line("x" * 200) == "x" * (words.LINE_LIMIT - 1) + "…"


def test_long_text_says_how_much_is_left_out():
    """A traceback of megabytes must not be sent to the browser, nor be taken for the whole of it."""
    text = "a" * words.TEXT_LIMIT + "bcd"

    assert words.bounded(text) == "a" * words.TEXT_LIMIT + "\n(3 characters left out)"
    assert words.bounded(text, keep_end=True).endswith("abcd")
    assert words.bounded("short") == "short"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a":[1]}', '{\n  "a": [\n    1\n  ]\n}'),
        ("[12345678901234567890123]", "[\n  12345678901234567890123\n]"),
        ('["ö"]', '[\n  "ö"\n]'),
        ("[not json", "[not json"),
        (r'["\ud800"]', r'["\ud800"]'),
        ("[" * 5000, "[" * 5000),
        ("[" * 5000 + "]" * 5000, "[" * 5000 + "]" * 5000),
        ("", ""),
    ],
)
def test_json_is_spread_out_and_anything_else_is_shown_raw(text, shown):
    """A row that cannot be decoded is why a person opens the page: it must be shown, not end in an error."""
    assert words.pretty(text) == shown


@pytest.mark.parametrize("text", [f"[{'1,' * words.TEXT_LIMIT}1]", f"{'[' * 51}{'1,' * 9000}1{']' * 51}"])
def test_long_or_deep_json_stays_as_it_is(text):
    """Indenting multiplies the size of what is deeply nested: kilobytes would become megabytes."""
    assert words.pretty(text) == text


def test_preformatted_text_is_escaped():
    """Stored text is data of strangers."""
    shown = words.preformatted("<b>\n&")

    assert isinstance(shown, SafeString)
    assert shown == '<pre class="workqueue-text" data-copy data-label="Copy">&lt;b&gt;\n&amp;</pre>'
    assert words.preformatted("") == "-"
