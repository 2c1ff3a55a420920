"""OpenTelemetry, where its API is installed: the current span at an enqueue is the parent of spans in the run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def current_traceparent() -> str | None:
    """Return the current span as a W3C trace context; None where there is none."""
    # Where nobody has imported OpenTelemetry there is no span, and neither an enqueue nor a start has to pay for it.
    if "opentelemetry.trace" not in sys.modules or (propagator := _propagator()) is None:
        return None
    carrier: dict[str, str] = {}
    propagator.inject(carrier)
    return carrier.get("traceparent")


def continue_trace(traceparent: str) -> None:
    """Make the span that ``traceparent`` names the current one, for as long as the current context lasts."""
    propagator = _propagator()
    if propagator is not None:
        _attach()(propagator.extract({"traceparent": traceparent}))


@cache
def _propagator() -> Any:
    try:
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - an optional package
    except ImportError:
        return None
    return tracecontext.TraceContextTextMapPropagator()


@cache
def _attach() -> Callable[[Any], object]:
    from opentelemetry.context import attach  # noqa: PLC0415 - as above

    return attach
