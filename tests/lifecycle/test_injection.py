"""Parameters that a dependency injector fills: FastDepends' ``@inject`` below ``@task``."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterator
from datetime import date

import pytest
from fast_depends import Depends, dependency_provider, inject

from django_workqueue import JobContext, Reject, task
from django_workqueue.domain.outcomes import Failed
from django_workqueue.domain.states import FailureKind
from django_workqueue.exceptions import ArgumentsDoNotFitError
from django_workqueue.lifecycle.run import Call, prepare, run
from django_workqueue.testing import ThreadedWorker
from django_workqueue.worker.executors import _settled
from tests.claims import claim_one

pytestmark = pytest.mark.django_db

#: What dependencies did, in order. Cleared before each test.
log: list[str] = []


def get_rate() -> float:
    """Answer a setting, say."""
    return 0.19


def get_session() -> Iterator[str]:
    """Open something that must be closed."""
    log.append("opened")
    try:
        yield "a session"
    finally:
        log.append("closed")


async def get_async_session() -> AsyncIterator[str]:
    """Open something in the event loop."""
    log.append("opened")
    await asyncio.sleep(0)
    try:
        yield "an async session"
    finally:
        log.append("closed")


def get_label(ctx: JobContext) -> str:
    """Depend on the delivery."""
    return f"{ctx.tenant} {ctx.attempt}"


def refuse() -> str:
    """Fail to be made."""
    raise Reject("no credentials")


@task
@inject
def plain(net: float, rate: float = Depends(get_rate), session: str = Depends(get_session)):
    """Ask for no context."""
    return [net * (1 + rate), session]


@task
@inject
def with_ctx(word: str, *, ctx: JobContext, label: str = Depends(get_label)):
    """Ask for the context, and for what depends on it."""
    return [word, label, ctx.attempt]


@task(takes_context=True)
@inject
def with_context(context: JobContext, word: str, session: str = Depends(get_session)):
    """Ask for the context as ``django.tasks`` has it."""
    return [word, session, context.attempt]


@task
@inject
async def async_plain(word: str, session: str = Depends(get_async_session)):
    """Ask for no context, in the event loop."""
    return [word, session]


@task
@inject
async def async_with_ctx(word: str, *, ctx: JobContext, label: str = Depends(get_label)):
    """Ask for the context, in the event loop."""
    return [word, label, ctx.attempt]


@task
@inject
def due(day: date):
    """Be given a date."""
    return day.strftime("%A")


@task
@inject
def injected_ctx(ctx: float = Depends(get_rate)):
    """Have a ``ctx`` of the injector's."""
    return ctx


@task
@inject
def broken(secret: str = Depends(refuse)):
    """Never be called."""
    return secret


@task
@inject
def fail(session: str = Depends(get_session)):
    """Fail while something is open."""
    raise RuntimeError(session)


@pytest.fixture(autouse=True)
def _clear():
    log.clear()


def outcome(store):
    """Claim the next job, run it as an executor does and return what came of it."""
    call = prepare(claim_one(store, "", "acme"), store, "worker-1")
    assert isinstance(call, Call)
    if call.terms.is_async:
        return asyncio.run(_settled(call)).outcome
    return contextvars.Context().run(run, call).outcome


@pytest.mark.parametrize(
    ("one", "given", "result"),
    [
        (plain, 100.0, '[119.0,"a session"]'),
        (with_ctx, "hello", '["hello","acme 1",1]'),
        (with_context, "hello", '["hello","a session",1]'),
        (async_plain, "hello", '["hello","an async session"]'),
        (async_with_ctx, "hello", '["hello","acme 1",1]'),
    ],
    ids=["function", "function ctx", "function context", "coroutine", "coroutine ctx"],
)
def test_dependencies_are_injected(store, one, given, result):
    """The job is enqueued with its own arguments alone, and what yields is closed behind the body."""
    one.using(tenant="acme").enqueue(given)

    assert outcome(store).result == result
    assert log in ([], ["opened", "closed"])


def test_ctx_of_the_injector_is_left_to_it(store):
    """A default that is not None says that somebody else fills it."""
    injected_ctx.enqueue()

    assert outcome(store).result == "0.19"


def test_dependency_that_fails_is_the_bodys_failure(store):
    """``Reject`` from there goes to the dead letters as from the body."""
    broken.enqueue()

    failed = outcome(store)

    assert isinstance(failed, Failed)
    assert (failed.kind, failed.message) == (FailureKind.REJECTED, "no credentials")


def test_dependency_is_closed_when_the_body_fails(store):
    """A session must not stay open after a failed attempt."""
    fail.enqueue()

    assert outcome(store).message == "a session"
    assert log == ["opened", "closed"]


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4)])
def test_own_arguments_are_still_checked_at_the_door(arguments):
    """What the injector fills need not be given; what it does not fill must."""
    with pytest.raises(ArgumentsDoNotFitError):
        plain.enqueue(*arguments)


def test_overridden_dependency_is_used_in_a_run(store):
    """A test replaces the mail server, say, by FastDepends' own means."""
    plain.enqueue(100.0)

    with dependency_provider.scope(get_rate, lambda: 0.0):
        assert outcome(store).result == '[100.0,"a session"]'


def test_arguments_become_what_their_annotations_say(store):
    """JSON has no dates: the job carries a text, and the body gets a date."""
    due.enqueue("2026-11-29")

    assert outcome(store).result == '"Sunday"'


@pytest.mark.django_db(transaction=True)
def test_dependencies_are_injected_in_a_worker():
    """In its threads and its event loop, many at once."""
    results = [one.enqueue(f"{number}") for number in range(10) for one in (with_ctx, async_with_ctx)]

    with ThreadedWorker() as worker:
        worker.settle()

    words = [with_ctx.get_backend().get_result(each.id).return_value[0] for each in results]
    assert words == [f"{number}" for number in range(10) for _ in range(2)]
