"""The project's hooks: found once by their dotted paths, called in the order in which the settings list them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from functools import lru_cache
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.module_loading import import_string

from ..conf import get_settings
from ..hooks import EnqueueHook, RunHook


def find(path: str) -> Callable[..., Any]:
    """Return the function at ``path``. Raises ImproperlyConfigured when there is none."""
    try:
        found = import_string(path)
    except Exception as error:
        raise ImproperlyConfigured(
            f"The hook {path!r} cannot be imported ({type(error).__name__}: {error})."
        ) from error
    if not callable(found):
        raise ImproperlyConfigured(f"The hook {path!r} is {found!r}, which cannot be called.")
    hook: Callable[..., Any] = found
    return hook


@lru_cache(maxsize=1)
def enqueue_hooks() -> tuple[EnqueueHook, ...]:
    """Return the hooks that see each job before it is stored."""
    return tuple(find(path) for path in get_settings().enqueue_hooks)


@lru_cache(maxsize=1)
def run_hooks() -> tuple[RunHook, ...]:
    """Return the hooks that surround each run."""
    return tuple(find(path) for path in get_settings().run_hooks)


@receiver(setting_changed)
def _forget(*, setting: str, **_kwargs: Any) -> None:
    if setting == "WORKQUEUE":
        enqueue_hooks.cache_clear()
        run_hooks.cache_clear()


@contextlib.contextmanager
def around(hooks: Sequence[RunHook], context: Any) -> Iterator[None]:
    """Surround the run of a plain function, the first hook outermost."""
    with ExitStack() as stack:
        for hook in hooks:
            manager = hook(context)
            if not isinstance(manager, AbstractContextManager):
                raise _unusable(hook, manager, "context manager")
            stack.enter_context(manager)
        yield


@contextlib.asynccontextmanager
async def around_async(hooks: Sequence[RunHook], context: Any) -> AsyncIterator[None]:
    """Surround the run of a coroutine. Of a manager that can be entered in both ways, the async one is taken."""
    async with AsyncExitStack() as stack:
        for hook in hooks:
            manager = hook(context)
            if isinstance(manager, AbstractAsyncContextManager):
                await stack.enter_async_context(manager)
            elif isinstance(manager, AbstractContextManager):
                stack.enter_context(manager)
            else:
                raise _unusable(hook, manager, "context manager, plain or async,")
        yield


def _unusable(hook: RunHook, given: Any, wanted: str) -> TypeError:
    name = getattr(hook, "__qualname__", type(hook).__name__)
    return TypeError(
        f"The run hook {hook.__module__}.{name} returned {type(given).__name__}, but a {wanted} is needed here. "
        "Decorate it with contextlib.contextmanager."
    )
