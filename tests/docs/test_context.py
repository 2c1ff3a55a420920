"""What the pages on hooks, tracing and injection show works as they say, and the reference lists what there is."""

from __future__ import annotations

import contextvars
import logging
import sys
from contextlib import contextmanager
from types import ModuleType

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import RequestFactory, override_settings
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from django_workqueue import correlation_id, hooks, tracing
from django_workqueue.checks import check_hooks
from django_workqueue.models import Job
from django_workqueue.testing import drain
from tests import samples

from .pages import blocks, headings, rows, section

pytestmark = pytest.mark.django_db

REFERENCE = "docs/reference/hooks.md"


def settings_of(page: str) -> list[dict[str, object]]:
    """Return every WORKQUEUE that a page shows."""
    shown = []
    for block in blocks(page, "python"):
        if block.file == "settings.py":
            names: dict[str, object] = {}
            exec(block.text, names)
            shown.append(names["WORKQUEUE"])
    return shown


def public(owner: type) -> set[str]:
    """Return the public attributes of a class with slots."""
    return {name for name in dir(owner) if not name.startswith("_")}


def test_reference_lists_the_hooks_there_are():
    """Each public name of the modules has a heading, and a new job's attributes are listed."""
    own = {
        name
        for module in (hooks, tracing)
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
    }

    assert {name for name in own if not name.startswith("_")} == set(headings(REFERENCE)) - {
        "ENQUEUE_HOOKS",
        "RUN_HOOKS",
    }
    assert {cells[0] for cells in rows(section(REFERENCE, "NewJob"))} == public(hooks.NewJob)


@pytest.mark.parametrize("page", ["docs/howto/hooks.md", "docs/howto/tracing.md", REFERENCE])
def test_hooks_on_the_page_pass_the_check(page, make_shop):
    """Settings that are copied, with the files beside them, are settings that work."""
    make_shop(page)

    shown = settings_of(page)
    for workqueue in shown:
        with override_settings(WORKQUEUE=workqueue):
            assert check_hooks() == []
    assert shown


def test_metadata_of_the_guide_reaches_the_task(make_shop):
    """Carried by hand, without any hook."""
    make_shop("docs/howto/hooks.md")["tasks"].cancel_order.using(metadata={"user": "ada"}).enqueue(17)

    [attempt] = drain()

    assert attempt.result == "Order 17 was cancelled by ada"


def test_tenant_hooks_of_the_guide_enter_the_schema(make_shop, monkeypatch):
    """As django-tenants would: its ``schema_context`` is entered with the tenant of the request."""
    entered = []

    @contextmanager
    def schema_context(name):
        entered.append(name)
        yield

    utils = ModuleType("django_tenants.utils")
    utils.schema_context = schema_context
    monkeypatch.setitem(sys.modules, "django_tenants", ModuleType("django_tenants"))
    monkeypatch.setitem(sys.modules, "django_tenants.utils", utils)
    monkeypatch.setattr(connection, "schema_name", "acme", raising=False)
    make_shop("docs/howto/hooks.md")

    with override_settings(WORKQUEUE=settings_of("docs/howto/hooks.md")[1]):
        samples.add.enqueue(1, 2)
        samples.add_async.using(tenant="globex").enqueue(1, 2)
        drain()

    assert entered == ["acme", "globex"]


def test_log_hook_of_the_guide_names_the_job(make_shop):
    """Each line of the body has the id of its job, and lines outside have none."""
    logs = make_shop("docs/howto/hooks.md")["logs"]
    seen = []

    class Look(logging.Handler):
        def emit(self, record):
            seen.append(record.job_id)

    handler = Look()
    handler.addFilter(logs.JobFilter())
    logger = logging.getLogger("tests.shop")
    logger.addHandler(handler)
    try:
        with override_settings(WORKQUEUE=settings_of("docs/howto/hooks.md")[2]):
            result = samples.log_a_line.enqueue()
            drain()
        logger.warning("closing")
    finally:
        logger.removeHandler(handler)

    assert seen == [result.id, "-"]


@pytest.mark.parametrize(
    ("header", "expected"), [({"X-Request-ID": "req-7"}, "req-7"), ({"X-Request-ID": 'a"b'}, None)]
)
def test_middleware_of_the_guide_gives_jobs_their_correlation_id(make_shop, header, expected):
    """From the header, unless that cannot be carried."""

    def view(_request):
        samples.add.enqueue(1, 2)
        return HttpResponse()

    middleware = make_shop("docs/howto/tracing.md")["middleware"].follow_requests(view)

    assert middleware(RequestFactory().get("/", headers=header)).status_code == 200
    assert Job.objects.get().decoded_metadata.get("correlation_id") == expected
    assert correlation_id.get() is None


def test_spans_of_the_guide_are_one_trace(make_shop, monkeypatch):
    """Request, first job, second job: each the parent of the next."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tasks = make_shop("docs/howto/tracing.md")["tasks"]
    monkeypatch.setattr(tasks, "tracer", provider.get_tracer("shop"))

    with provider.get_tracer("web").start_as_current_span("request"):
        tasks.ship.enqueue(17)
    drain()

    spans = {span.name: span for span in exporter.get_finished_spans()}
    parents = {name: span.parent and span.parent.span_id for name, span in spans.items()}
    assert parents["ship"] == spans["request"].context.span_id
    assert parents["pack"] == spans["ship"].context.span_id
    assert len({span.context.trace_id for span in spans.values()}) == 1
    assert not contextvars.Context().run(trace.get_current_span).get_span_context().is_valid


def test_injection_of_the_guide_works(make_shop):
    """A function and a coroutine, with and without the context."""
    tasks = make_shop("docs/howto/inject.md")["tasks"]
    tasks.print_label.enqueue(17)
    tasks.print_for_tenant.using(tenant="acme").enqueue(17)

    results = {attempt.task: attempt.result for attempt in drain()}

    assert results == {
        "shop.tasks.print_label": "printed order 17",
        "shop.tasks.print_for_tenant": "order 17 for acme, attempt 1",
    }
