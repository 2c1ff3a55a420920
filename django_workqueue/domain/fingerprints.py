"""Which failures are the same: a short text that tells the causes of dead letters apart."""

from __future__ import annotations

import re
from hashlib import blake2b

LENGTH = 32
"""Characters of a fingerprint: hexadecimal digits."""
MOST_LINE = 300
"""Characters of an error's first line that count."""

_WORD = re.compile(r"[\w-]+")


def fingerprint(task: str, error: str) -> str:
    """Return what dead letters of one task have in common whose ``error``, "Class: message", is of one kind."""
    text = f"{task}\n{normalised(error)}".encode(errors="replace")
    return blake2b(text, digest_size=LENGTH // 2).hexdigest()


def normalised(error: str) -> str:
    """
    Return the first line of ``error`` with each word that has a digit as "#".

    Ids, amounts, ports and times make of one cause a thousand different texts.
    """
    first = error.strip().partition("\n")[0][:MOST_LINE]
    return " ".join(_WORD.sub(_masked, first).split())


def _masked(word: re.Match[str]) -> str:
    text = word[0]
    return "#" if any(character.isdigit() for character in text) else text
