"""
Masking: values of arguments whose names ``WORKQUEUE["MASK"]`` lists are shown only to whoever may and asks for them.

Every door that shows what a job was given, returned or said goes through a ``Veil``. Where a name cannot be told, the
value is hidden: showing too little can be mended, showing too much cannot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Protocol

from ..conf import get_settings
from ..exceptions import InvalidJobError
from .encoding import decode
from .registry import positional_names

MASKED = "[masked]"
"""What stands in place of a value."""
MEANINGFUL = 6
"""Characters from which on a masked value is looked for in texts too: a shorter one would be found everywhere."""
CUT, CUT_END = "\n... ", " characters left out ...\n"
"""Stand, with a number between, where a stored text was cut."""

_COLUMNS = {"args": list, "kwargs": dict, "metadata": dict, "result": object}


class Shown(Protocol):
    """A job wherever it is, or a schedule: a task and its arguments as JSON text."""

    task: Any
    args: Any
    kwargs: Any


def is_on() -> bool:
    """Whether the project masks anything."""
    return bool(get_settings().mask)


def is_masked(name: str) -> bool:
    """Whether the value of an argument, or of an object's key, of this name is hidden."""
    patterns = get_settings().mask
    return bool(patterns) and _matcher(patterns)(name.casefold())


@lru_cache(maxsize=8)
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    match = re.compile("|".join(map(translate, patterns))).match
    return lambda name: match(name) is not None


@dataclass(frozen=True, slots=True)
class Veil:
    """What may be shown of one row: its columns of JSON by name, and how its other texts are cleaned."""

    columns: Mapping[str, str]
    names: tuple[str, ...] = ()
    """Whose values are hidden."""
    secrets: tuple[str, ...] = ()
    """The values themselves, as they may stand in texts; the longest first."""

    @classmethod
    def of(cls, row: Shown) -> Veil:
        """Return the veil over ``row``; one that hides nothing where the project masks nothing."""
        if not is_on():
            return cls.lifted(row)
        walk = _Walk()
        values = {name: _decoded(text, _COLUMNS[name]) for name, text in _texts(row)}
        values["args"], values["kwargs"] = walk.call(row.task, values["args"], values["kwargs"])
        rest = {name: walk.column(name, values[name]) for name in ("metadata", "result") if name in values}
        columns = {name: json.dumps(value) for name, value in (values | rest).items()}
        return cls(columns, tuple(walk.names), tuple(sorted(walk.secrets, key=len, reverse=True)))

    @classmethod
    def lifted(cls, row: Shown) -> Veil:
        """Return what shows all of ``row``."""
        return cls(dict(_texts(row)))

    def text(self, text: str) -> str:
        """Return ``text``, of an error for example, with the masked values that it quotes taken out."""
        for secret in self.secrets:
            text = text.replace(secret, MASKED)
            before, cut, after = text.partition(CUT)
            if cut:
                # Of a long text the middle is left out: a value may have lost its end, or its beginning.
                text = f"{_without_end(before, secret)}{cut}{_without_beginning(after, secret)}"
        return text


def _without_end(text: str, secret: str) -> str:
    """Return ``text`` without the beginning of ``secret`` that it ends with."""
    most = min(len(secret) - 1, len(text))
    length = next((each for each in range(most, MEANINGFUL - 1, -1) if text.endswith(secret[:each])), 0)
    return f"{text[:-length]}{MASKED}" if length else text


def _without_beginning(text: str, secret: str) -> str:
    """Return ``text``, the rest of a cut, without the end of ``secret`` that it begins with."""
    count, words, rest = text.partition(CUT_END)
    most = min(len(secret) - 1, len(rest))
    length = next((each for each in range(most, MEANINGFUL - 1, -1) if rest.startswith(secret[-each:])), 0)
    return f"{count}{words}{MASKED}{rest[length:]}" if length else text


def mask_json(text: str) -> str:
    """Return JSON ``text`` of something else than a job, a result of a workflow for example, with its keys masked."""
    return json.dumps(_Walk().column("", _decoded(text, object))) if is_on() else text


class _Unreadable:
    """Stands for JSON text that cannot be looked into."""


_UNREADABLE = _Unreadable()


def _texts(row: Shown) -> Iterator[tuple[str, str]]:
    return ((name, text) for name in _COLUMNS if isinstance(text := getattr(row, name, None), str))


def _decoded(text: str, kind: type) -> Any:
    try:
        return decode(text, kind)
    except ValueError:
        return _UNREADABLE


@dataclass(slots=True)
class _Walk:
    """Goes through values, and gathers what it hides."""

    names: dict[str, None] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)

    def call(self, task: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the arguments of a call; all positional ones are hidden where their names cannot be told."""
        shown = self.column("kwargs", kwargs)
        if args is _UNREADABLE or kwargs is _UNREADABLE:
            return self._hide("args", args), shown
        names = positional_names(task, args, kwargs)
        if names is None:
            return [self._hide(f"args[{place}]", value) for place, value in enumerate(args)], shown
        return [self._named(name, value) for name, value in zip(names, args, strict=True)], shown

    def column(self, name: str, value: Any) -> Any:
        """Return a whole column; it is hidden where it cannot be looked into."""
        if value is _UNREADABLE:
            return self._hide(name, None)
        try:
            return self._value(value)
        except RecursionError:
            return self._hide(name, None)

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._named(key, member) for key, member in value.items()}
        return [self._value(member) for member in value] if isinstance(value, list) else value

    def _named(self, name: str, value: Any) -> Any:
        return self._hide(name, value) if is_masked(name) else self._value(value)

    def _hide(self, name: str, value: Any) -> str:
        self.names[name] = None
        self.secrets.update(_quotable(value))
        return MASKED


def _quotable(value: Any) -> Iterator[str]:
    """Yield the forms in which an error's text may quote ``value``."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _quotable(member)
        return
    text = str(value)
    # Of a text over several lines, a traceback may show one.
    forms = {text, repr(text)[1:-1], json.dumps(text)[1:-1], *map(str.strip, text.splitlines())}
    yield from (form for form in forms if len(form) >= MEANINGFUL)


# -- what is typed over a masked value ---------------------------------------------------------------------------------


def unmasked(row: Shown, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """
    Return arguments that a person has typed for the task of ``row``, with what was masked of it where MASKED stands.

    Raises InvalidJobError where MASKED stands in another place, or a value would come to one that is not masked: that
    would be a way to read it.
    """
    if not is_on():
        return args, kwargs
    stored = [_decoded(row.args, list), _decoded(row.kwargs, dict)]
    shown = list(_Walk().call(row.task, *stored))
    back_args, back_kwargs = _restored([args, kwargs], shown, stored)
    if not _stays_masked([args, kwargs], list(_Walk().call(row.task, back_args, back_kwargs))):
        raise InvalidJobError(_MISPLACED)
    return back_args, back_kwargs


_MISPLACED = f"{MASKED!r} stands where no masked value was. It keeps a value in its own place; anywhere else type one."


def _restored(typed: Any, shown: Any, stored: Any) -> Any:
    if typed == MASKED:
        if shown != MASKED:
            raise InvalidJobError(_MISPLACED)
        return stored
    if not isinstance(typed, dict | list):
        return typed
    if not isinstance(shown, type(typed)):
        shown = stored = type(typed)()
    if isinstance(typed, dict):
        return {key: _restored(member, shown.get(key), stored.get(key)) for key, member in typed.items()}
    most = len(typed)
    return [_restored(*members) for members in zip_longest(typed, shown[:most], stored[:most])]


def _stays_masked(typed: Any, shown: Any) -> bool:
    """Whether each MASKED of ``typed`` is one of ``shown`` too, which has the same shape where it is not masked."""
    if shown == MASKED or not isinstance(typed, dict | list):
        return bool(shown == MASKED or typed != MASKED)
    members: Sequence[Any] = list(typed) if isinstance(typed, dict) else range(len(typed))
    return all(_stays_masked(typed[member], shown[member]) for member in members)
