"""The names under which a step is remembered: its key, from what no redelivery changes, and its digest."""

from __future__ import annotations

import functools
import hashlib
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

from ..exceptions import InvalidStepError
from .encoding import encode

OnUnknown = Literal["raise", "retry"]
"""What to do with a step that was begun by an attempt which ended before its outcome was recorded."""

STEP_LENGTH = 200


def idempotency_key(tenant: str, job_id: UUID, step: str = "") -> str:
    """
    Return the key of a job's step, 64 hexadecimal digits; without ``step`` that of the job itself.

    Made of the tenant, the job and the step's name alone: neither the attempt, nor the lease, nor the clock is in it,
    so that every redelivery, retry and requeue has the same.
    """
    return _sha256({"job": str(job_id), "step": step, "tenant": tenant})


def digest(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, step: str, max_bytes: int) -> str:
    """Return what tells one call from another: the function's path and its arguments, which must be strict JSON."""
    path, bound, named = _described(fn)
    given = {"args": [*bound, *args], "kwargs": {**named, **kwargs}}
    encode(given, f"step {step!r}: arguments", max_bytes)
    return _sha256(given | {"function": path})


def check_step(step: Any, *, may_be_empty: bool = False) -> None:
    """Raise InvalidStepError unless ``step`` can name a step."""
    if not isinstance(step, str) or not (step or may_be_empty):
        raise InvalidStepError(f"The step is {step!r}. Name it by a text that is the same in every attempt.")
    if len(step) > STEP_LENGTH:
        raise InvalidStepError(f"The step {step[:40]!r}... has {len(step)} characters; at most {STEP_LENGTH} are kept.")
    if not step.isprintable():
        raise InvalidStepError(f"The step is {step!r}. Leave out control characters.")


def _described(fn: Callable[..., Any]) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
    """Return the path of ``fn``, and the arguments that a ``functools.partial`` has bound to it."""
    if isinstance(fn, functools.partial):
        path, bound, named = _described(fn.func)
        return path, [*bound, *fn.args], {**named, **fn.keywords}
    named_object = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named_object.__module__}.{named_object.__qualname__}", (), {}


def _sha256(value: Any) -> str:
    # One text for one meaning: sorted keys, no spaces, and accents composed.
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(unicodedata.normalize("NFC", text).encode()).hexdigest()
