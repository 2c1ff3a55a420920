"""Hooks around a run: entered in order, for functions and coroutines, and what they raise is the body's."""

from __future__ import annotations

import asyncio
import contextvars
import logging

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_workqueue import Reject, task
from django_workqueue.domain.outcomes import Settlement, Succeeded
from django_workqueue.domain.states import FailureKind
from django_workqueue.lifecycle.run import Call, prepare, run
from django_workqueue.worker.executors import _settled
from tests import hooking, samples
from tests.claims import claim_one

pytestmark = pytest.mark.django_db


@task
def body(word):
    """Note that it ran, or fail."""
    hooking.log.append(word)
    if word == "fail":
        raise samples.OutOfPaperError
    if word == "reject":
        raise Reject("never")
    return word


@task
async def async_body(word):
    """Note that it ran, or fail, in the event loop."""
    await asyncio.sleep(0)
    return body.func(word)


@task
def schema():
    """Say what this job's queries see."""
    return hooking.schema_of_connection()


@task
async def async_schema():
    """Say what this coroutine's queries see."""
    return await hooking.async_schema_of_connection()


@pytest.fixture
def hook(settings):
    """Return a function that puts hooks of ``tests.hooking`` into force."""
    hooking.log.clear()

    def put(*names: str) -> None:
        settings.WORKQUEUE = {"RUN_HOOKS": [f"tests.hooking.{name}" for name in names]}

    return put


def attempt(store, *tenants: str) -> Settlement:
    """Claim the next job and run it as an executor does."""
    call = prepare(claim_one(store, *tenants), store, "worker-1")
    assert isinstance(call, Call)
    if call.terms.is_async:
        return asyncio.run(_settled(call))
    return contextvars.Context().run(run, call)


BODIES = pytest.mark.parametrize("one", [body, async_body], ids=["function", "coroutine"])


@BODIES
def test_hooks_surround_the_body_in_order(store, hook, one):
    """The first one listed is the outermost, and each is told about the job."""
    hook("outer", "inner")
    one.enqueue("works")

    assert attempt(store).outcome.result == '"works"'

    assert hooking.log == ["outer enters 1", "inner enters", "works", "inner leaves", "outer leaves"]


@BODIES
def test_hook_sees_the_error_of_the_body(store, hook, one):
    """It may roll back or report; the job fails all the same."""
    hook("outer")
    one.enqueue("fail")

    outcome = attempt(store).outcome

    assert outcome.error_class == "tests.samples.OutOfPaperError"
    assert hooking.log == ["outer enters 1", "fail", "outer sees OutOfPaperError", "outer leaves"]


@BODIES
@pytest.mark.parametrize(
    ("name", "log"), [("refuse_run", ["outer enters 1"]), ("fail_after", ["outer enters 1", "works"])]
)
def test_error_of_a_hook_is_the_bodys(store, hook, one, name, log):
    """The attempt fails with it, and the hooks around it leave."""
    hook("outer", name)
    one.enqueue("works")

    outcome = attempt(store).outcome

    assert (outcome.kind, outcome.error_class) == (FailureKind.ERROR, "tests.hooking.RefusedError")
    assert hooking.log == [*log, "outer sees RefusedError", "outer leaves"]


@BODIES
def test_steering_passes_through_hooks(store, hook, one):
    """``Reject`` still sends the job to the dead letters."""
    hook("outer", "inner")
    one.enqueue("reject")

    assert attempt(store).outcome.kind == FailureKind.REJECTED


@BODIES
def test_error_that_a_hook_swallows_is_none(store, hook, one):
    """That is what a context manager that swallows says: the block has ended well."""
    hook("swallow")
    one.enqueue("fail")

    outcome = attempt(store).outcome

    assert isinstance(outcome, Succeeded)
    assert outcome.result == "null"
    assert hooking.log == ["fail", "swallowed OutOfPaperError"]


def test_coroutine_may_have_async_hooks(store, hook):
    """Mixed with plain ones, in order."""
    hook("outer", "only_async", "inner")
    async_body.enqueue("works")

    attempt(store)

    assert hooking.log[1:4] == ["async enters", "inner enters", "works"]
    assert hooking.log[4:] == ["inner leaves", "async leaves", "outer leaves"]


def test_async_hook_cannot_surround_a_function(store, hook):
    """The attempt fails and says so: no hook is passed over in silence."""
    hook("only_async")
    body.enqueue("works")

    outcome = attempt(store).outcome

    assert outcome.error_class == "builtins.TypeError"
    assert "only_async returned _AsyncGeneratorContextManager, but a context manager is needed" in outcome.message
    assert hooking.log == []


@BODIES
def test_hook_that_returns_no_manager_is_named(store, hook, one):
    """The decorator is easily forgotten."""
    hook("no_manager")
    one.enqueue("works")

    message = attempt(store).outcome.message

    assert message.startswith("The run hook tests.hooking.no_manager returned generator")
    assert message.endswith("Decorate it with contextlib.contextmanager.")


def test_hook_that_cannot_be_found_fails_loudly(store, settings):
    """By the check at first, which keeps a worker from starting."""
    body.enqueue("works")
    settings.WORKQUEUE = {"RUN_HOOKS": ["tests.hooking.not_a_hook"]}

    with pytest.raises(ImproperlyConfigured, match="which cannot be called"):
        attempt(store)


def test_without_hooks_no_context_is_made(store, settings):
    """What is off costs nothing: neither context nor stack."""
    body.enqueue("works")
    settings.WORKQUEUE = {}

    call = prepare(claim_one(store), store, "worker-1")

    assert isinstance(call, Call)
    assert (call.context, call.terms.run_hooks) == (None, ())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("one", [schema, async_schema], ids=["function", "coroutine"])
def test_tenants_schema_is_set_where_the_body_queries(store, hook, one):
    """In a coroutine, the thread of its ``sync_to_async`` and not the loop's (maciej-gol/tenant-schemas-celery#27)."""
    hook("tenant_schema")
    one.using(tenant="acme").enqueue()

    assert attempt(store, "acme").outcome.result == '"acme"'
    assert hooking.schema_of_connection() == "public"


@pytest.mark.django_db(transaction=True)
@BODIES
def test_tenants_schema_is_left_after_an_error(store, hook, one):
    """The error is the body's own, and the connection is as it was."""
    hook("tenant_schema")
    one.using(tenant="acme").enqueue("fail")

    assert attempt(store, "acme").outcome.error_class == "tests.samples.OutOfPaperError"
    assert hooking.schema_of_connection() == "public"


class LookAround(logging.Handler):
    """Takes down what a formatter would add to each line."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def emit(self, record):
        """Take it down."""
        self.seen.append(hooking.log_context.get())


def test_log_lines_of_the_body_name_the_job(store, hook, monkeypatch):
    """As structlog's context variables do: bound for the body, unbound behind it."""
    hook("bind_log")
    result = samples.log_a_line.using(metadata={"correlation_id": "req-1"}).enqueue()
    handler = LookAround()
    monkeypatch.setattr(logging.getLogger("tests.shop"), "handlers", [handler])
    monkeypatch.setattr(logging.getLogger("tests.shop"), "level", logging.INFO)

    attempt(store)

    assert handler.seen == [{"job": result.id, "correlation_id": "req-1"}]
    assert hooking.log_context.get() is None
