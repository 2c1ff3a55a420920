"""The trace that travels from enqueue to run: a correlation id, and the W3C trace context."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from ..exceptions import InvalidJobError
from . import otel

logger = logging.getLogger("django_workqueue.enqueue")


class CorrelationId:
    """
    A context variable that in a job without a correlation id answers the job's own.

    Only when it is asked: to write an id out costs a tenth of what a worker spends on a short job.
    """

    def __init__(self) -> None:
        variable: ContextVar[str | UUID | None] = ContextVar("django_workqueue_correlation_id", default=None)
        self._get = variable.get
        self.set = variable.set
        """Let another one hold from here on. Returns a token."""
        self.reset = variable.reset
        """Take back the ``set`` that gave the token."""

    def get(self) -> str | None:
        """Return the correlation id that holds here."""
        value = self._get()
        return str(value) if isinstance(value, UUID) else value


correlation_id = CorrelationId()
"""Set it, in a middleware for instance, and jobs enqueued from there carry it; it is set again around their run."""

traceparent: ContextVar[str | None] = ContextVar("django_workqueue_traceparent", default=None)
"""The W3C trace context header, carried in the same way. A current span of OpenTelemetry goes before it."""

MOST_CHARACTERS = 200
_QUOTES = frozenset("'\"`")
# Version 00 ends with the flags; a later one may say more, and ff is none. Ids of zeros alone are no ids.
_TRACEPARENT = re.compile(
    r"(?:00(?=.{53}\Z)|(?!00|ff)[0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]*)?"
)


def captured_trace() -> dict[str, Any]:
    """
    Return what is set where a job is enqueued, as metadata.

    What cannot be carried is left out: it often comes from a request's header, which must not make the enqueue fail.
    """
    correlation, parent = correlation_id.get(), otel.current_traceparent() or traceparent.get()
    if correlation is None and parent is None:
        return {}
    surroundings = {"correlation_id": correlation, "traceparent": parent}
    return {name: value for name, value in surroundings.items() if value is not None and _is_carried(name, value)}


def checked_trace(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``metadata`` without a trace that is None, which carries none. Raises InvalidJobError for a bad one."""
    checked = dict(metadata)
    for name in _PROBLEMS.keys() & checked.keys():
        if checked[name] is None:
            del checked[name]
        elif problem := _PROBLEMS[name](checked[name]):
            raise InvalidJobError(f"metadata[{name!r}] {problem}")
    return checked


def correlation_of(job_id: UUID, metadata: Mapping[str, Any]) -> str:
    """Return the correlation id of a job: the one that it carries, or its own id, with which a new story begins."""
    carried = metadata.get("correlation_id")
    return carried if isinstance(carried, str) else str(job_id)


def restore_trace(job_id: UUID, metadata: Mapping[str, Any]) -> None:
    """Set the trace that a job carries in the current context, which is the job's own: new, and ended with it."""
    if not metadata:
        correlation_id.set(job_id)
        return
    carried = metadata.get("correlation_id")
    correlation_id.set(carried if isinstance(carried, str) else job_id)
    parent = metadata.get("traceparent")
    traceparent.set(parent)
    if isinstance(parent, str):
        otel.continue_trace(parent)


def _is_carried(name: str, value: Any) -> bool:
    problem = _PROBLEMS[name](value)
    if problem:
        logger.debug("A %s was not taken along with a job: it %s", name, problem)
    return not problem


def _problem_of_correlation_id(value: Any) -> str:
    """Return what keeps ``value`` from standing in a log line or a header; "" when nothing does."""
    if not isinstance(value, str):
        return f"is {value!r}, of type {type(value).__name__}. Pass a string."
    if not value:
        return "is empty. Leave it out."
    if len(value) > MOST_CHARACTERS:
        return f"has {len(value)} characters; at most {MOST_CHARACTERS} are kept: {value[:40]!r}..."
    if not value.isprintable() or not _QUOTES.isdisjoint(value):
        return f"is {value!r}. Leave out control characters and quotes."
    return ""


def _problem_of_traceparent(value: Any) -> str:
    if isinstance(value, str) and len(value) <= MOST_CHARACTERS and _TRACEPARENT.fullmatch(value):
        return ""
    shown = f"{value[:80]!r}" if isinstance(value, str) else f"{value!r}"
    return f"is {shown}, which is no W3C trace context. Pass it as in '00-<32 hex digits>-<16 hex digits>-01'."


_PROBLEMS = {"correlation_id": _problem_of_correlation_id, "traceparent": _problem_of_traceparent}
