"""Pause: keep every worker from beginning the jobs of a queue, of a tenant or of a task, and let them go on."""

from __future__ import annotations

import logging
from typing import Any

from ..conf import get_settings
from ..domain.contract import AnyTask, Task
from ..domain.pauses import all_paths
from ..domain.states import PauseKind
from ..exceptions import InvalidJobError
from ..models import Pause
from ..models.base import BY_LENGTH, NAME_LENGTH, TASK_LENGTH
from ..store import Store, store_for
from .enqueue import check_text, queue_name
from .limits import unpark
from .wake import wake

logger = logging.getLogger("django_workqueue.operate")


def pausable(
    queue: str | None = None, *, tenant: str | None = None, task: str | AnyTask | None = None
) -> tuple[PauseKind, str]:
    """Return what can be paused by this one name, as it is stored. Raises InvalidJobError."""
    kind, name = _named(queue, tenant=tenant, task=task)
    most = TASK_LENGTH if kind is PauseKind.TASK else NAME_LENGTH
    check_text(kind.value, name, most, may_be_empty=kind is PauseKind.TENANT)
    return kind, name


def _named(queue: str | None, *, tenant: str | None, task: str | AnyTask | None) -> tuple[PauseKind, str]:
    given = {PauseKind.QUEUE: queue_name(queue), PauseKind.TENANT: tenant, PauseKind.TASK: _path(task)}
    named = [(kind, name) for kind, name in given.items() if name is not None]
    if len(named) != 1:
        raise InvalidJobError(f"{len(named)} of queue, tenant and task are named. Name exactly one.")
    return named[0]


def pause(
    queue: str | None = None,
    *,
    tenant: str | None = None,
    task: str | AnyTask | None = None,
    by: str,
    database: str | None = None,
) -> bool:
    """
    Stop all workers, within two seconds, from beginning jobs of one queue, of one tenant or of one task.

    What runs goes on, and jobs can still be enqueued. False when it was paused already: the first pause stays. Raises
    InvalidJobError unless exactly one of the three is named.
    """
    kind, name = pausable(queue, tenant=tenant, task=task)
    check_text("by", by, BY_LENGTH)
    store = store_for(database)
    if kind is PauseKind.QUEUE:
        store.ensure_queue(name)
    is_new = store.pause(kind, name, by)
    if is_new:
        logger.warning("%s %r was paused by %s.", kind.label, name, by, extra={kind.value: name})
    return is_new


def resume(
    queue: str | None = None,
    *,
    tenant: str | None = None,
    task: str | AnyTask | None = None,
    database: str | None = None,
) -> bool:
    """
    Let workers begin its jobs again, within two seconds. False when it was not paused.

    Raises InvalidJobError unless exactly one of the three is named.
    """
    # Whatever its name: a pause that is there can be ended.
    kind, name = _named(queue, tenant=tenant, task=task)
    store = store_for(database)
    was_paused = store.resume(kind, name)
    if kind is PauseKind.TASK:
        wake(store, unpark(store, all_paths([name], get_settings().aliases) - store.pauses().tasks))
    else:
        wake(store, _waiting_lanes(store, kind, name))
    if was_paused:
        logger.warning("%s %r was resumed.", kind.label, name, extra={kind.value: name})
    return was_paused


def paused(*, database: str | None = None) -> list[Pause]:
    """Return all that is paused, by kind and name."""
    return list(Pause.objects.using(store_for(database).alias).order_by("kind", "name"))


def _path(task: Any) -> Any:
    """Return the path under which the jobs of a task are stored."""
    return task.module_path if isinstance(task, Task) else task


def _waiting_lanes(store: Store, kind: PauseKind, name: str) -> set[tuple[str, str]]:
    if kind is PauseKind.QUEUE:
        return {(name, tenant) for tenant in store.lanes(name)}
    return {(queue, name) for queue in store.ready_queues() if store.has_ready(queue, name)}
