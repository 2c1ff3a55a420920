"""Strict JSON: what is accepted comes back equal and of the same type, and everything else is refused by name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_workqueue.domain.encoding import decode, encode
from django_workqueue.exceptions import PayloadError, PayloadTooLargeError

LIMIT = 10_000
#: Every sort of character that JSON or a database treats in its own way.
LETTERS = "aZ0 \"'\\/\b\n\t\x01\x7f\x85ü\u2028\ufeff\uffff🎉"
#: What JSON is written with, and some things that look like it.
JSON_LETTERS = '[]{}",:0123456789.eE+-ntfrualsINy \\\x00ü'

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(LETTERS)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(LETTERS), inner),
    max_leaves=20,
)


def same(left, right) -> bool:
    """Tell whether two values are equal, down to their types."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return repr(left) == repr(right)


@given(values)
@settings(deadline=None, database=None, derandomize=True, max_examples=100)
def test_what_is_accepted_comes_back_unchanged(value):
    """Any value at all that passes the door, with its order of keys and its types."""
    assert same(decode(encode(value, "value", 1_000_000), object), value)


@given(st.text(JSON_LETTERS, max_size=40))
@settings(deadline=None, database=None, derandomize=True, max_examples=200)
def test_text_is_decoded_or_refused_with_one_error(text):
    """A damaged row raises ValueError and nothing else, whatever is in it."""
    for expected in (list, dict):
        try:
            value = decode(text, expected)
        except ValueError:
            continue
        assert isinstance(value, expected)


@pytest.mark.parametrize("text", ["", "[", "{", "nul", "[1]]", "'a'", "\x00", "[" * 100_000, "9" * 5000])
def test_damaged_text_is_refused(text):
    """Also where Python's parser has a limit of its own."""
    with pytest.raises(ValueError, match=r"."):
        decode(text, list)


@pytest.mark.parametrize(("text", "expected"), [("{}", list), ("[]", dict), ("null", list), ("1", dict), ('"x"', list)])
def test_text_of_another_type_is_refused(text, expected):
    """Positional arguments are a list and keywords an object, or the row is damaged."""
    with pytest.raises(ValueError, match="expected"):
        decode(text, expected)


def test_empty_arguments_are_fresh_each_time():
    """A task that changes what it was given changes nothing for the next."""
    decode("[]", list).append(1)
    decode("{}", dict)["a"] = 1

    assert (decode("[]", list), decode("{}", dict)) == ([], {})


@pytest.mark.parametrize(
    ("value", "text"), [(None, "null"), ([1, 2], "[1,2]"), ({"a": "ü"}, '{"a":"ü"}'), (1e22, "1e+22")]
)
def test_text_is_compact_and_readable(value, text):
    """No blanks, no escapes that are not needed."""
    assert encode(value, "value", LIMIT) == text
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1: 2}, "args"),
        ([{"a": {1: 2}}], r"args\[0\]\['a'\]"),
        ([[], [None, object()]], r"args\[1\]\[1\]"),
        ({"it's": [b""]}, r"args\[\"it's\"\]\[0\]"),
    ],
)
def test_error_names_the_place(value, path):
    """The path is written as Python would reach the value."""
    with pytest.raises(PayloadError, match=f"^{path} ") as caught:
        encode(value, "args", LIMIT)

    assert str(caught.value).startswith(caught.value.path)


@pytest.mark.parametrize("subclass", [type("Text", (str,), {}), type("Number", (int,), {}), type("Real", (float,), {})])
def test_subclass_is_refused_by_its_own_name(subclass):
    """It would come back as its plain base."""
    with pytest.raises(PayloadError, match=rf"{subclass.__name__}, which JSON would give back as plain"):
        encode(subclass(), "value", LIMIT)


def test_containers_of_other_classes_are_refused():
    """Named tuples, ordered dicts and lists with methods would lose what they are."""
    for value in (type("Row", (list,), {})(), type("Map", (dict,), {})()):
        with pytest.raises(PayloadError, match="Convert it first"):
            encode(value, "value", LIMIT)


def test_limit_counts_the_encoded_bytes():
    """The quotes count too."""
    assert encode("a" * 8, "value", 10) == '"aaaaaaaa"'
    with pytest.raises(PayloadTooLargeError, match="takes 11 bytes as JSON; the limit is 10"):
        encode("a" * 9, "value", 10)
