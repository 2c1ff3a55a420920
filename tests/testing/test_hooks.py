"""Hooks in tests: ``drain`` and the immediate backend surround bodies as a worker does."""

from __future__ import annotations

import pytest
from django.db import transaction

from django_workqueue import task
from django_workqueue.testing import JobFailedError, drain
from tests import hooking

pytestmark = pytest.mark.django_db

IMMEDIATE = {"BACKEND": "django_workqueue.testing.ImmediateBackend", "QUEUES": []}


@task
def body():
    """Leave something for after the commit."""
    with transaction.atomic():
        transaction.on_commit(lambda: hooking.log.append("committed"))
        hooking.log.append("body")


@task
async def async_body():
    """Do the same, as far as a coroutine can."""
    hooking.log.append("body")
    return await hooking.async_schema_of_connection()


@pytest.fixture
def hook(settings):
    """Return a function that puts hooks of ``tests.hooking`` into force."""
    hooking.log.clear()

    def put(*names: str) -> None:
        settings.WORKQUEUE = {"RUN_HOOKS": [f"tests.hooking.{name}" for name in names]}

    return put


def test_drain_surrounds_the_body(hook):
    """What runs at the commit runs inside the hooks, as it does in a worker."""
    hook("outer")
    body.enqueue()

    drain()

    assert hooking.log == ["outer enters 1", "body", "committed", "outer leaves"]


def test_drain_surrounds_a_coroutine(hook):
    """With async hooks too, and the tenant's schema where its queries are made."""
    hook("outer", "only_async", "tenant_schema")
    async_body.using(tenant="acme").enqueue()

    [attempt] = drain()

    assert attempt.result == "acme"
    assert hooking.log == ["outer enters 1", "async enters", "body", "async leaves", "outer leaves"]
    assert hooking.schema_of_connection() == "public"


@pytest.mark.parametrize("one", [body, async_body], ids=["function", "coroutine"])
def test_drain_raises_what_a_hook_raises(hook, one):
    """With the hook's own error as the cause, so that its place is found."""
    hook("refuse_run")
    one.enqueue()

    with pytest.raises(JobFailedError) as caught:
        drain()

    assert isinstance(caught.value.__cause__, hooking.RefusedError)
    assert hooking.log == []


@pytest.mark.parametrize("one", [body, async_body], ids=["function", "coroutine"])
def test_immediate_backend_surrounds_the_body(hook, settings, one):
    """A test that runs jobs inside ``enqueue`` sees what production does."""
    settings.TASKS = {"default": IMMEDIATE}
    hook("outer", "inner")

    one.enqueue()

    assert hooking.log == ["outer enters 1", "inner enters", "body", "inner leaves", "outer leaves"]
