"""Converters of command line arguments, shared by the commands."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from ..domain.fingerprints import LENGTH

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> timedelta:
    """Convert "90", "90s", "15m", "24h" or "7d" into a timedelta; plain numbers are seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration. Write seconds, or 90s, 15m, 24h, 7d.")
    number, unit = match.groups()
    try:
        return timedelta(seconds=float(number) * _UNITS[unit or "s"])
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than any clock counts.") from None


def size(text: str) -> int:
    """Convert "500M" or "1.5G" into bytes. The unit is needed: 500 could be meant as anything."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG])B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size. Write 500M or 1.5G.")
    number, unit = match.groups()
    return int(float(number) * 1024 ** ("KMG".index(unit.upper()) + 1))


def names(text: str) -> tuple[str, ...]:
    """Convert "a, b" into ("a", "b")."""
    return tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())


def words_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a converter of words with commas between, all of them ``known``."""

    def convert(text: str) -> tuple[str, ...]:
        given = names(text)
        if unknown := [word for word in given if word not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(known)}.")
        if not given:
            raise argparse.ArgumentTypeError(f"{text!r} names none of {', '.join(known)}.")
        return given

    return convert


def job_id(text: str) -> UUID:
    """Convert the id of a job."""
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of a job.") from None


def fingerprint(text: str) -> str:
    """Convert the name of a group of dead letters."""
    if re.fullmatch(f"[0-9a-f]{{{LENGTH}}}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a group of dead letters: {LENGTH} hexadecimal digits.")
    return text


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a converter of whole numbers from ``least`` to ``most``."""

    def convert(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}.")
        return int(text)

    return convert


def json_value(text: str) -> Any:
    """Convert JSON text."""
    try:
        return json.loads(text)
    except ValueError as error:
        # Without the text: what a job is given may be private, and complaints end up in logs.
        raise argparse.ArgumentTypeError(f"This is not JSON: {error}.") from None


def json_of(kind: type) -> Callable[[str], Any]:
    """Return a converter of JSON text that holds a ``kind``, a list or a dict."""
    word = "a list" if kind is list else "an object"

    def convert(text: str) -> Any:
        value = json_value(text)
        if not isinstance(value, kind):
            raise argparse.ArgumentTypeError(f"This is not {word} in JSON.")
        return value

    return convert
