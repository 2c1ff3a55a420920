"""How far a running job says that it is, as it is stored and shown."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from ..exceptions import InvalidJobError

MOST_TEXT = 200
"""Characters of the text that are kept."""


class Progress(NamedTuple):
    """So much is done, of a total if it is known, and a few words."""

    done: float
    total: float | None = None
    text: str = ""

    @property
    def percent(self) -> int | None:
        """The share that is done, in whole percent; None without a total."""
        if not self.total:
            return None
        return math.floor(100 * min(self.done / self.total, 1))

    def encode(self) -> str:
        """Return JSON text. Raises InvalidJobError for what is no progress, by name."""
        for name, value in (("done", self.done), ("total", self.total)):
            if value is not None and not _is_amount(value):
                raise InvalidJobError(f"progress: {name} is {value!r}. Pass a number from zero on.")
        if self.done is None or not isinstance(self.text, str):
            wrong = "done is None" if self.done is None else f"text is {self.text!r}, not a string"
            raise InvalidJobError(f"progress: {wrong}. Pass how much is done, and a few words.")
        text = self.text if len(self.text) <= MOST_TEXT else f"{self.text[: MOST_TEXT - 1]}…"
        # In ASCII, where everything that a text may hold is escaped: no database refuses it.
        return json.dumps(self._replace(text=text)._asdict(), separators=(",", ":"))

    @classmethod
    def decode(cls, stored: str) -> Progress | None:
        """Return what ``encode`` wrote; None for anything else."""
        try:
            given: dict[str, Any] = json.loads(stored)
            progress = cls(**given)
            progress.encode()
        except (ValueError, TypeError):
            return None
        return progress

    def __str__(self) -> str:
        amount = f"{self.done:g}" if self.total is None else f"{self.done:g} / {self.total:g}"
        share = "" if self.percent is None else f" ({self.percent}%)"
        return f"{amount}{share} {self.text}".rstrip()


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
