"""
Arguments and results as strict JSON: what would not come back equal, and of the same type, is refused by name.

Stored as text, since a database's own JSON type may change a value on the way: PostgreSQL's ``jsonb`` gives the
float ``1e22`` back as an integer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..exceptions import PayloadError, PayloadTooLargeError

# Numbers beyond this many digits are refused by Python's own int parser (sys.int_info.default_max_str_digits).
_MAX_INT_BITS = 14_000
_MAX_DEPTH = 100


def encode(value: Any, path: str, max_bytes: int) -> str:
    """
    Return ``value`` as JSON text.

    ``path`` is what the value is called in errors. Raises PayloadError for anything that JSON would not give back
    unchanged, and PayloadTooLargeError past ``max_bytes`` of UTF-8.
    """
    if value is None:
        return "null"
    if not value and type(value) in _EMPTIES:
        return _EMPTIES[type(value)]
    _check(value, path, _MAX_DEPTH)
    text = "".join(_chunks(value, 0))
    size = len(text) if text.isascii() else len(text.encode())
    if size > max_bytes:
        raise PayloadTooLargeError(
            path,
            f"takes {size:,} bytes as JSON; the limit is {max_bytes:,} (WORKQUEUE['MAX_PAYLOAD_BYTES']). "
            "Store the data elsewhere and pass its id.",
        )
    return text


def decode(text: str, expected: type) -> Any:
    """Return the value of the JSON ``text``. Raises ValueError when it is not JSON of type ``expected``."""
    value = _EMPTY[text]() if text in _EMPTY else _loads(text)
    if not isinstance(value, expected):
        raise ValueError(f"is {type(value).__name__}, expected {expected.__name__}")  # noqa: TRY004 - one error for all bad text
    return value


def plain(value: Any) -> Any:
    """
    Turn what JSON can say in its own types into those, as ``django.tasks`` does with results.

    Arguments are held to more: a result is only read, and a job must not die of having returned a tuple or an enum.
    """
    if isinstance(value, bool) or value is None:
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind.__str__(value) if kind is str else kind(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {plain(key): plain(each) for key, each in value.items()}
    return value


# Most jobs have no metadata, and many no arguments of one sort.
_EMPTY: dict[str, type] = {"[]": list, "{}": dict}
_EMPTIES = {kind: text for text, kind in _EMPTY.items()}

# json.dumps() would make one for every call.
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _chunker() -> Callable[[Any, int], Iterable[str]]:
    """Return what the encoder makes anew for every value, where it is written in C. Cycles were refused as too deep."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda value, _level: _encoder.iterencode(value)
    chunker: Callable[[Any, int], Iterable[str]] = make(
        None, _encoder.default, json.encoder.encode_basestring, None, ":", ",", False, False, False
    )
    return chunker


_chunks = _chunker()

_scan = json.JSONDecoder().raw_decode


def _loads(text: str) -> Any:
    try:
        try:
            value, end = _scan(text)
        except json.JSONDecodeError:
            end = -1
        # What we encode has nothing around it; json.loads(), twice as slow, allows for spaces or says what is wrong.
        return value if end == len(text) else json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _check(value: Any, path: str, depth: int) -> None:
    kind = type(value)
    if kind is str:
        _check_text(value, path)
    elif kind is float:
        if not math.isfinite(value):
            raise PayloadError(path, f"is {value!r}, which JSON does not have. Pass None or a string.")
    elif kind is int:
        if value.bit_length() > _MAX_INT_BITS:
            raise PayloadError(path, "is an integer too long to be read back. Pass it as a string.")
    elif kind is dict or kind is list:
        if not depth:
            raise PayloadError(path, f"is nested more than {_MAX_DEPTH} levels deep. Flatten it.")
        _check_members(value, path, depth - 1)
    elif kind is not bool and value is not None:
        raise PayloadError(path, _explain(value))


def _check_members(value: dict[Any, Any] | list[Any], path: str, depth: int) -> None:
    if isinstance(value, list):
        if _are_plain(value):
            return
        for index, member in enumerate(value):
            _check(member, f"{path}[{index}]", depth)
        return
    if set(map(type, value)) == _STR_ALONE and _are_plain(value) and _are_plain(value.values()):
        return
    for key, member in value.items():
        if type(key) is not str:
            raise PayloadError(
                path, f"has the key {key!r} of type {_name(key)}; JSON turns it into a string. Use str keys."
            )
        _check_text(key, f"the key {key!r} of {path}")
        _check(member, f"{path}[{key!r}]", depth)


_STR_ALONE = {str}


def _are_plain(members: Iterable[Any]) -> bool:
    """Whether all are beyond doubt, as most arguments are: then none needs a path by which it could be named."""
    for member in members:
        kind = type(member)
        if kind is str:
            if not member.isascii() or "\x00" in member:
                return False
        elif kind is int:
            if member.bit_length() > _MAX_INT_BITS:
                return False
        elif kind is not bool and member is not None:
            return False
    return True


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise PayloadError(path, "holds a NUL character, which databases cannot store. Remove it.")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise PayloadError(path, "holds half of a surrogate pair, which is not text. Remove it.") from None


def _explain(value: Any) -> str:
    name = _name(value)
    for base in (str, int, float, list, dict):
        if isinstance(value, base):
            return f"is of type {name}, which JSON would give back as plain {base.__name__}. Convert it first."
    if isinstance(value, tuple):
        return "is of type tuple, which JSON would give back as a list. Pass a list."
    return f"is of type {name}, which JSON does not have. Pass its id, or a string that the task turns back."


def _name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
