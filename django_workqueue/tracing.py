"""
Spans of OpenTelemetry: one for each enqueue, and one for each run, which is linked to it. For the extra ``otel``.

Two hooks, for ``WORKQUEUE["ENQUEUE_HOOKS"]`` and ``WORKQUEUE["RUN_HOOKS"]``. Neither tells what a job was given, nor
what an error says: both may be private.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from . import __version__
from .domain.context import JobContext
from .domain.otel import current_traceparent
from .hooks import NewJob

SYSTEM = "django_workqueue"
_PROPAGATOR = TraceContextTextMapPropagator()


def producer_span(new: NewJob) -> None:
    """
    Make a span of kind PRODUCER, a child of the one in which the job is enqueued, and let the job carry it.

    An enqueue hook. A job that is told to begin anew, by a traceparent of None, gets none.
    """
    carried = new.metadata.get("traceparent")
    if carried is None and "traceparent" in new.metadata:
        return
    parent = _PROPAGATOR.extract({"traceparent": carried} if isinstance(carried, str) else {})
    attributes = {
        "messaging.system": SYSTEM,
        "messaging.operation.type": "send",
        "messaging.destination.name": new.queue,
        "django_workqueue.task": new.task,
        "django_workqueue.tenant": new.tenant,
    }
    name = f"enqueue {new.task}"
    with _tracer().start_as_current_span(name, parent, kind=SpanKind.PRODUCER, attributes=attributes):
        if (traceparent := current_traceparent()) is not None:
            new.metadata["traceparent"] = traceparent


@contextmanager
def consumer_span(context: JobContext) -> Iterator[None]:
    """
    Make a span of kind CONSUMER around one attempt, with a link to the span that the job carries. A run hook.

    An attempt that fails is marked by the class of its error.
    """
    origin = trace.get_current_span().get_span_context()
    attributes: dict[str, str | int] = {
        "messaging.system": SYSTEM,
        "messaging.operation.type": "process",
        "messaging.destination.name": context.queue,
        "messaging.message.id": str(context.job_id),
        "django_workqueue.task": context.task,
        "django_workqueue.tenant": context.tenant,
        "django_workqueue.attempt": context.attempt,
    }
    with _tracer().start_as_current_span(
        f"run {context.task}",
        kind=SpanKind.CONSUMER,
        attributes=attributes,
        links=[Link(origin)] if origin.is_valid else [],
        # A message may quote arguments.
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except BaseException as error:
            span.set_attribute("error.type", f"{type(error).__module__}.{type(error).__qualname__}")
            span.set_status(Status(StatusCode.ERROR))
            raise


def _tracer() -> Tracer:
    return trace.get_tracer("django_workqueue", __version__)
