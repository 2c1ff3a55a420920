"""What goes wrong, as text that every database stores: an exception object may hold sockets, or exist nowhere else."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import timedelta

from ..domain.masking import CUT, CUT_END
from ..domain.outcomes import Failed
from ..domain.states import FailureKind
from ..exceptions import JobTimeoutError

MOST_MESSAGE = 2_000
MOST_TRACEBACK = 20_000


def timed_out(limit: float | None, run_seconds: float, stack: str) -> Failed:
    """Describe an attempt that ran longer than ``limit`` seconds. ``stack`` says where it was."""
    return Failed(
        kind=FailureKind.TIMEOUT,
        error_class=f"{JobTimeoutError.__module__}.{JobTimeoutError.__qualname__}",
        message=f"The attempt ran longer than its timeout{'' if limit is None else f' of {limit:g} s'}.",
        traceback=_storable(lambda: stack, MOST_TRACEBACK),
        run_seconds=run_seconds,
    )


def traceback_of(error: BaseException) -> str:
    """Return the traceback as text."""
    return "".join(traceback.format_exception(error))


def failed(
    error: BaseException, kind: FailureKind, *, run_seconds: float = 0.0, retry_after: timedelta | None = None
) -> Failed:
    """Describe what an attempt raised, or was refused by."""
    return Failed(
        kind=kind,
        error_class=f"{type(error).__module__}.{type(error).__qualname__}"[:300],
        message=_storable(lambda: str(error), MOST_MESSAGE),
        traceback=_storable(lambda: traceback_of(error), MOST_TRACEBACK),
        run_seconds=run_seconds,
        retry_after=retry_after,
    )


def _storable(text_of: Callable[[], str], most: int) -> str:
    """Return text that every database stores: bounded, without NUL and half surrogates."""
    try:
        text = text_of()
    except Exception as error:  # noqa: BLE001 - an error's own __str__ may raise anything
        text = f"(its text could not be made: {type(error).__name__})"
    text = text.replace("\x00", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}{CUT}{len(text) - most}{CUT_END}{text[-half:]}"
