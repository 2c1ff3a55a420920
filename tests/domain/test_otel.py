"""OpenTelemetry: the span around an enqueue is the parent of the spans in the run, and without it nothing is paid."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import uuid

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from django_workqueue import correlation_id, traceparent
from django_workqueue.domain import otel
from django_workqueue.domain.trace import captured_trace, restore_trace

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACER = TracerProvider().get_tracer("tests")


def alone(function):
    """Run ``function`` in a context of its own, as each job has one, and return its answer."""
    return contextvars.Context().run(function)


def as_text(span) -> str:
    """Return a span as a W3C trace context."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def test_current_span_is_captured():
    """The span in which a job is enqueued goes with it."""
    with TRACER.start_as_current_span("request") as span:
        assert captured_trace()["traceparent"] == as_text(span)
    assert captured_trace() == {}


def test_current_span_goes_before_the_variable():
    """The variable holds the parent of the whole run, the span is where the enqueue stands."""

    def look():
        traceparent.set(PARENT)
        with TRACER.start_as_current_span("request") as span:
            return captured_trace()["traceparent"] == as_text(span)

    assert alone(look)


def test_span_of_the_run_is_a_child_of_the_enqueuing_span():
    """One trace from the request to the last job (open-telemetry/opentelemetry-python#862)."""
    with TRACER.start_as_current_span("request") as request:
        metadata = captured_trace()

    def body():
        restore_trace(uuid.uuid4(), metadata)
        with TRACER.start_as_current_span("in the body") as span:
            return span

    span = alone(body)
    assert span.get_span_context().trace_id == request.get_span_context().trace_id
    assert span.parent.span_id == request.get_span_context().span_id
    assert span.parent.is_remote


def test_job_enqueued_in_a_job_stays_in_the_trace():
    """Also where the body starts no span."""

    def body():
        restore_trace(uuid.uuid4(), {"traceparent": PARENT, "correlation_id": "req-1"})
        return captured_trace()

    assert alone(body) == {"traceparent": PARENT, "correlation_id": "req-1"}


def test_run_without_a_trace_has_no_parent():
    """It is a root, whatever was current where the worker was started."""

    def body():
        restore_trace(uuid.uuid4(), {})
        with TRACER.start_as_current_span("in the body") as span:
            return span.parent

    assert alone(body) is None
    assert correlation_id.get() is None


@pytest.mark.parametrize("value", ["nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_bad_stored_trace_context_is_no_crash(value):
    """A row that was changed by hand runs as one without a trace."""

    def body():
        restore_trace(uuid.uuid4(), {"traceparent": value})
        return trace.get_current_span().get_span_context().is_valid

    assert alone(body) is False


@pytest.fixture
def without_otel(monkeypatch):
    """Let OpenTelemetry be absent."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    otel._propagator.cache_clear()
    yield
    otel._propagator.cache_clear()


@pytest.mark.usefixtures("without_otel")
def test_variable_is_carried_without_opentelemetry():
    """The package is an extra; whoever sets the variable by hand does not need it."""

    def body():
        restore_trace(uuid.uuid4(), {"traceparent": PARENT})
        return captured_trace()["traceparent"]

    assert alone(body) == PARENT


def test_opentelemetry_is_imported_by_none_but_those_who_use_it():
    """Where nobody has imported it there is no span, and an enqueue need not ask."""
    program = (
        "import sys; from django_workqueue.domain.trace import captured_trace; captured_trace(); "
        "raise SystemExit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
