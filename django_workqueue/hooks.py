"""
What a project hooks in around its jobs, and the hooks that come with the package.

``WORKQUEUE["ENQUEUE_HOOKS"]`` lists functions that see each job before it is checked and stored;
``WORKQUEUE["RUN_HOOKS"]`` lists functions that return a context manager for the run of one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager
from datetime import datetime, tzinfo
from types import TracebackType
from typing import Any
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.utils import timezone, translation

from .domain.context import JobContext

logger = logging.getLogger("django_workqueue.run")


class NewJob:
    """A job that is about to be enqueued. Hooks may change all of it but its task."""

    __slots__ = ("_task", "metadata", "priority", "queue", "tenant")

    def __init__(self, *, task: str, queue: str, tenant: str, priority: int, metadata: dict[str, Any]) -> None:
        self._task = task
        self.queue = queue
        self.tenant = tenant
        self.priority = priority
        self.metadata = metadata
        """What the caller gave, and the trace that is carried."""

    @property
    def task(self) -> str:
        """The dotted path of the task."""
        return self._task


EnqueueHook = Callable[[NewJob], object]
"""Looks at a new job and changes it. What it raises, ``enqueue`` raises, and nothing is stored."""

RunHook = Callable[[JobContext], AbstractContextManager[object] | AbstractAsyncContextManager[object]]
"""Returns what surrounds one run. What that raises counts as raised by the task."""


class in_query_thread(AbstractContextManager[Any], AbstractAsyncContextManager[Any]):  # noqa: N801 - used as a function
    """
    Let ``manager`` act in the thread where the job's queries are made, which for a coroutine is not the event loop's.

    For whatever belongs to a database connection, such as a search path. A context variable cannot be reset that way.
    """

    def __init__(self, manager: AbstractContextManager[Any]) -> None:
        self._manager = manager

    def __enter__(self) -> Any:
        return self._manager.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._manager.__exit__(kind, error, trace)

    async def __aenter__(self) -> Any:
        return await sync_to_async(self._manager.__enter__)()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await sync_to_async(self._manager.__exit__)(kind, error, trace)


# -- language and time zone -------------------------------------------------------------------------------------------


def carry_locale(new: NewJob) -> None:
    """
    Put the active language and time zone into the job's metadata, where they are not the project's own.

    An enqueue hook. What the caller put under ``language`` or ``time_zone`` stays.
    """
    language, zone = translation.get_language(), timezone.get_current_timezone()
    if language and language != django_settings.LANGUAGE_CODE:
        new.metadata.setdefault("language", language)
    if zone != timezone.get_default_timezone():
        new.metadata.setdefault("time_zone", _name_of(zone))


@contextmanager
def restore_locale(context: JobContext) -> Iterator[None]:
    """
    Activate the language and the time zone that ``carry_locale`` put into the job's metadata.

    A run hook. What this project does not know, after a deploy for instance, leaves its default in force.
    """
    language, name = context.metadata.get("language"), context.metadata.get("time_zone")
    with ExitStack() as stack:
        if language is not None and _is_known("language", language, translation.check_for_language, context):
            stack.enter_context(translation.override(language))
        if name is not None and _is_known("time zone", name, _zone, context):
            stack.enter_context(timezone.override(_zone(name)))
        yield


def _name_of(zone: tzinfo) -> str:
    """Return the name of a zone; of one that has none, a fixed offset, what ``_zone`` understands."""
    return getattr(zone, "key", None) or datetime.now(zone).strftime("%z")


def _zone(name: str) -> tzinfo:
    if name.startswith(("+", "-")):
        return datetime.strptime(name, "%z").tzinfo or timezone.get_default_timezone()
    return ZoneInfo(name)


def _is_known(what: str, name: Any, find: Callable[[str], Any], context: JobContext) -> bool:
    try:
        found = isinstance(name, str) and bool(find(name))
    except (LookupError, ValueError, OSError):
        found = False
    if not found:
        logger.warning("Job %s carries the %s %r, which is not known here.", context.job_id, what, name)
    return found
