"""Spans of producers and consumers: in one trace, linked, and without what is private."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from django_workqueue import task, tracing
from django_workqueue.models import Job
from django_workqueue.testing import drain

pytestmark = pytest.mark.django_db

SECRET = "4111-1111"


@task(max_attempts=1)
def pay(card):
    """Fail, quoting what it was given."""
    raise ValueError(card)


@task
def follow(word):
    """Do nothing."""


@task
def lead(word):
    """Enqueue another."""
    follow.enqueue(word)


@task
async def await_it(word):
    """Be a coroutine."""
    await asyncio.sleep(0)


@pytest.fixture
def spans(settings, monkeypatch):
    """Put the hooks into force, and return a function that returns the spans that have ended."""
    settings.WORKQUEUE = {
        "ENQUEUE_HOOKS": ["django_workqueue.tracing.producer_span"],
        "RUN_HOOKS": ["django_workqueue.tracing.consumer_span"],
    }
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing.trace, "get_tracer", provider.get_tracer)
    return lambda: {span.name: span for span in exporter.get_finished_spans()}


def named(found, verb, function):
    """Return the span of an enqueue or a run."""
    return found[f"{verb} {function.module_path}"]


@pytest.mark.parametrize("function", [follow, await_it])
def test_run_is_linked_to_its_enqueue(spans, function):
    """In one trace, from the request on; the run may be an hour later and elsewhere."""
    with tracing.trace.get_tracer("shop").start_as_current_span("request"):
        result = function.enqueue("a")
    drain()

    found = spans()
    request, producer, consumer = found["request"], named(found, "enqueue", function), named(found, "run", function)
    assert (producer.kind, consumer.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert producer.parent.span_id == request.context.span_id
    assert consumer.parent.span_id == producer.context.span_id
    assert [link.context.span_id for link in consumer.links] == [producer.context.span_id]
    assert {span.context.trace_id for span in found.values()} == {request.context.trace_id}
    assert consumer.attributes["messaging.message.id"] == str(result.id)
    assert (producer.attributes["django_workqueue.task"], consumer.attributes["django_workqueue.attempt"]) == (
        function.module_path,
        1,
    )


def test_enqueue_in_a_run_is_below_it(spans):
    """A chain of jobs is one tree."""
    lead.enqueue("a")
    drain()

    found = spans()
    assert named(found, "enqueue", follow).parent.span_id == named(found, "run", lead).context.span_id


def test_enqueue_outside_of_any_span_begins_a_trace(spans):
    """And its run is in it."""
    follow.enqueue("a")
    drain()

    found = spans()
    assert named(found, "enqueue", follow).parent is None
    assert named(found, "run", follow).parent.span_id == named(found, "enqueue", follow).context.span_id


def test_job_that_begins_anew_is_left_alone(spans):
    """Its run is the root of a trace of its own."""
    with tracing.trace.get_tracer("shop").start_as_current_span("request"):
        follow.using(metadata={"traceparent": None}).enqueue("a")
    drain()

    found = spans()
    assert f"enqueue {follow.module_path}" not in found
    assert named(found, "run", follow).parent is None
    assert not named(found, "run", follow).links


def test_failed_attempt_is_marked_by_the_class_of_its_error(spans):
    """Its message may quote arguments, and spans leave the house."""
    pay.enqueue(SECRET)
    drain(raise_errors=False)

    span = named(spans(), "run", pay)
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "builtins.ValueError"
    assert SECRET not in span.to_json()
    assert not span.events


def test_without_a_provider_the_trace_passes_through(settings):
    """The API alone makes no spans, and must not break the trace that a caller carries."""
    settings.WORKQUEUE = {"ENQUEUE_HOOKS": ["django_workqueue.tracing.producer_span"]}
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert not trace.get_current_span().get_span_context().is_valid

    follow.using(metadata={"traceparent": parent}).enqueue("a")
    follow.enqueue("b")

    first, second = Job.objects.order_by("id")
    assert first.decoded_metadata == {"traceparent": parent}
    assert second.decoded_metadata == {}
