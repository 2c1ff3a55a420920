"""System checks: one function for each subject, one for each message. An id is never given twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's own name
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils import timezone

from .conf import Fault, QueuePolicy, Settings, find_faults, get_settings
from .domain.contract import CONTRACT_APP, task_backends
from .domain.hooks import find
from .domain.registry import declared_tasks
from .lifecycle.declare import Misdeclared, definitions
from .models.base import NAME_LENGTH
from .store import store_for
from .store.sqlite import SqliteStore

SUPPORTED_VENDORS = {"postgresql", "sqlite"}


@register(Tags.compatibility)
def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    """Check ``WORKQUEUE`` by itself: its shape first, then what does not go together."""
    faults = find_faults()
    if faults:
        return [settings_fault(fault) for fault in faults]
    settings = get_settings()
    return [
        *_check_times("WORKQUEUE", settings, settings.policy),
        *(
            message
            for name, policy in settings.queues.items()
            for message in _check_times(f"WORKQUEUE['QUEUES'][{name!r}]", settings, policy)
        ),
        *(queue_name_unusable(name) for name in settings.queues if not _is_usable(name)),
        *([database_unknown(settings.database)] if settings.database not in django_settings.DATABASES else []),
    ]


@register(Tags.compatibility)
def check_tasks(**_kwargs: Any) -> list[CheckMessage]:
    """Check what ``TASKS`` and INSTALLED_APPS say about the queue."""
    if find_faults():
        return []
    messages: list[CheckMessage] = []
    if CONTRACT_APP is not None and not apps.is_installed(CONTRACT_APP):
        messages.append(contract_app_missing(CONTRACT_APP))
    permitted = _permitted_queues()
    if permitted is None:
        messages.append(no_backend())
    elif permitted:
        messages += [queue_not_permitted(name) for name in get_settings().queues if name not in permitted]
    return [*messages, *_check_timeouts(get_settings())]


@register(Tags.compatibility)
def check_hooks(**_kwargs: Any) -> list[CheckMessage]:
    """Check that every hook can be found."""
    if find_faults():
        return []
    settings = get_settings()
    messages: list[CheckMessage] = []
    for key, paths in (("ENQUEUE_HOOKS", settings.enqueue_hooks), ("RUN_HOOKS", settings.run_hooks)):
        for path in paths:
            try:
                find(path)
            except ImproperlyConfigured as error:
                messages.append(hook_unusable(key, error))
    return [*messages, *_check_scope(settings.tenant_scope)]


@register(Tags.compatibility)
def check_schedules(**_kwargs: Any) -> list[CheckMessage]:
    """Check the schedules in code, each by itself."""
    if find_faults():
        return []
    _, refused = definitions(timezone.now())
    return [schedule_task_unknown(each) if each.is_unknown_task else schedule_unusable(each) for each in refused]


@register(Tags.database)
def check_database(*, databases: Sequence[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """Check the queue's database, where it is among those to be looked at."""
    if find_faults() or (alias := get_settings().database) not in (databases or ()):
        return []
    connection = connections[alias]
    messages: list[CheckMessage] = []
    if alias != "default":
        messages.append(database_differs(alias))
    if connection.vendor not in SUPPORTED_VENDORS:
        messages.append(vendor_unsupported(alias, connection.vendor))
    store = store_for(alias)
    if isinstance(store, SqliteStore):
        messages += [sqlite_local_times(alias)] if not django_settings.USE_TZ else []
        messages += [sqlite_not_immediate(alias)] if not store.begins_as_writer() else []
        messages += [sqlite_without_wal(alias)] if not store.has_write_ahead_log() else []
    return messages


# -- subjects ----------------------------------------------------------------------------------------------------


def _check_times(where: str, settings: Settings, policy: QueuePolicy) -> Iterator[CheckMessage]:
    if settings.beat * 2 > policy.lease:
        yield heartbeat_too_slow(where)
    if policy.max_lease <= policy.lease:
        yield cap_below_lease(where)
    if policy.timeout is not None and policy.timeout >= policy.max_lease:
        yield timeout_above_cap(f"{where}['TIMEOUT']", f"{where}['MAX_LEASE']")
    if policy.backoff.cap < policy.backoff.base:
        yield backoff_cap_below_base(where)
    if settings.step_retention <= (horizon := settings.redelivery_horizon(policy)):
        yield steps_forgotten_early(where, horizon)


def _check_timeouts(settings: Settings) -> Iterator[CheckMessage]:
    """Check the timeouts of tasks against the cap of the queue that each is declared for."""
    for task in declared_tasks():
        timeout, cap = getattr(task, "timeout", None), settings.queue(task.queue_name).max_lease
        if timeout is not None and timeout >= cap:
            yield timeout_above_cap(
                f"The timeout of {task.module_path}, {timeout},", f"MAX_LEASE of its queue {task.queue_name!r}, {cap}"
            )


def _check_scope(path: str | None) -> Iterator[CheckMessage]:
    if path is not None:
        try:
            found = find(path)
        except ImproperlyConfigured as error:
            yield tenant_scope_unusable(str(error))
        else:
            if iscoroutinefunction(found):
                yield tenant_scope_unusable(f"The hook {path!r} is a coroutine function; the admin calls a plain one.")


def _is_usable(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= NAME_LENGTH and not name.endswith("/") and name.isprintable()


def _permitted_queues() -> set[str] | None:
    """Return the queues that our backends permit, empty where one permits any; None when no backend is ours."""
    from .backend import WorkTaskBackend  # noqa: PLC0415 - the backend imports the models

    ours = [backend for backend in task_backends.all() if isinstance(backend, WorkTaskBackend)]
    if not ours:
        return None
    return set.union(*(backend.queues for backend in ours)) if all(backend.queues for backend in ours) else set()


# -- messages ----------------------------------------------------------------------------------------------------


def settings_fault(fault: Fault) -> Error:
    """Say what is wrong with one key."""
    return Error(f"{fault.key} {fault.message}.", hint=fault.hint, id="django_workqueue.E002")


def heartbeat_too_slow(where: str) -> Error:
    """Say that a lease does not outlive a missed beat."""
    return Error(
        f"WORKQUEUE['HEARTBEAT'] is more than half of {where}['LEASE'].",
        hint="A lease must outlive one missed beat, or live jobs are run twice. A third of the lease is the default.",
        id="django_workqueue.E003",
    )


def cap_below_lease(where: str) -> Error:
    """Say that the cap is below the lease."""
    return Error(
        f"{where}['MAX_LEASE'] is not more than {where}['LEASE'].",
        hint="MAX_LEASE bounds all renewals together, the longest that one attempt may run: leave room for renewals.",
        id="django_workqueue.E004",
    )


def timeout_above_cap(timeout: str, cap: str) -> Error:
    """Say that the cap ends every attempt before its timeout does."""
    return Error(
        f"{timeout} is not less than {cap}.",
        hint="The cap ends the lease before the timeout ends the run, and leaves its thread in its slot.",
        id="django_workqueue.E010",
    )


def backoff_cap_below_base(where: str) -> Error:
    """Say that the backoff can never reach its base."""
    return Error(
        f"{where}['BACKOFF_CAP'] is less than {where}['BACKOFF'].",
        hint="BACKOFF is the first delay, BACKOFF_CAP the longest.",
        id="django_workqueue.E005",
    )


def database_unknown(alias: str) -> Error:
    """Say that the queue's database is not configured."""
    return Error(
        f"WORKQUEUE['DATABASE'] is {alias!r}, which is not in DATABASES.",
        hint=f"Configured: {', '.join(sorted(django_settings.DATABASES))}.",
        id="django_workqueue.E006",
    )


def queue_name_unusable(name: Any) -> Error:
    """Say that no job could be in a queue of that name."""
    return Error(
        f"WORKQUEUE['QUEUES'] has the name {name!r}, which no queue can have.",
        hint=f"Use up to {NAME_LENGTH} printable characters, without a slash at the end.",
        id="django_workqueue.E007",
    )


def contract_app_missing(app: str) -> Error:
    """Say that the backport of django.tasks is not installed as an app."""
    return Error(
        f"{app!r} is not in INSTALLED_APPS.",
        hint="Django 5.2 has no tasks of its own; add the backport beside django_workqueue.",
        id="django_workqueue.E008",
    )


def hook_unusable(key: str, error: ImproperlyConfigured) -> Error:
    """Say that a hook cannot be found, or is no function."""
    return Error(
        f"WORKQUEUE[{key!r}]: {error}",
        hint="Name each hook by the dotted path of a function. Until this is mended no job can be enqueued or run.",
        id="django_workqueue.E009",
    )


def tenant_scope_unusable(problem: str) -> Error:
    """Say that nobody can be told which tenants they may see."""
    return Error(
        f"WORKQUEUE['TENANT_SCOPE']: {problem}",
        hint="Name it by the dotted path of a function. Until this is mended the admin shows no jobs to anybody.",
        id="django_workqueue.E022",
    )


def schedule_unusable(fault: Misdeclared) -> Error:
    """Say why a schedule in code cannot be followed."""
    return Error(
        f"{fault.where} cannot be used.",
        hint=fault.problem,
        obj=fault.name,
        id="django_workqueue.E020",
    )


def schedule_task_unknown(fault: Misdeclared) -> Error:
    """Say that a schedule in code names no task."""
    return Error(
        f"{fault.where} names no task.",
        hint=fault.problem,
        obj=fault.name,
        id="django_workqueue.E021",
    )


def no_backend() -> Warning:
    """Say that nothing enqueues here."""
    return Warning(
        "No backend in TASKS is WorkQueueBackend, so no task is stored in the queue.",
        hint="TASKS = {'default': {'BACKEND': 'django_workqueue.backend.WorkQueueBackend', 'QUEUES': []}}",
        id="django_workqueue.W001",
    )


def queue_not_permitted(name: str) -> Warning:
    """Say that a configured queue can never receive a job."""
    return Warning(
        f"WORKQUEUE['QUEUES'] configures {name!r}, which is not in the QUEUES of any WorkQueueBackend.",
        hint="Add it to TASKS[...]['QUEUES'], or mend its spelling; an empty list permits any name.",
        id="django_workqueue.W002",
    )


def database_differs(alias: str) -> Warning:
    """Say that enqueueing shares no transaction with the default database."""
    return Warning(
        f"The queue is in the database {alias!r}, not in 'default'.",
        hint="A job is enqueued in the transaction of its own database: a rollback of 'default' does not take it back.",
        id="django_workqueue.W003",
    )


def vendor_unsupported(alias: str, vendor: str) -> Warning:
    """Say that the database is not one that the suite runs on."""
    return Warning(
        f"The queue's database {alias!r} is {vendor}, which is not tested.",
        hint="PostgreSQL is for production, SQLite for one machine.",
        id="django_workqueue.W004",
    )


def steps_forgotten_early(where: str, horizon: timedelta) -> Warning:
    """Say that a step may be forgotten while its job can still be delivered."""
    return Warning(
        f"WORKQUEUE['STEP_RETENTION'] is not longer than a job may be under way by {where}: {horizon}.",
        hint=(
            "MAX_ATTEMPTS times MAX_LEASE, LEASE and BACKOFF_CAP, and UNKNOWN_TASK_PATIENCE. Keep steps for longer: "
            "who enqueues a job's id again after that repeats its effects."
        ),
        id="django_workqueue.W008",
    )


def sqlite_local_times(alias: str) -> Warning:
    """Say that leases are judged by a clock that jumps."""
    return Warning(
        f"The SQLite database {alias!r} stores local times, as USE_TZ is False.",
        hint="When the clocks change, every lease lapses at once or none does for an hour. Set USE_TZ = True.",
        id="django_workqueue.W007",
    )


def sqlite_not_immediate(alias: str) -> Warning:
    """Say that transactions of this SQLite database cannot be trusted to become writers."""
    return Warning(
        f"The SQLite database {alias!r} begins transactions as a reader.",
        hint=(
            "One that reads before it enqueues fails with 'database is locked' beside a worker. "
            f"Set DATABASES[{alias!r}]['OPTIONS']['transaction_mode'] = 'IMMEDIATE'."
        ),
        id="django_workqueue.W005",
    )


def sqlite_without_wal(alias: str) -> Warning:
    """Say that readers and the writer of this SQLite database wait for each other."""
    return Warning(
        f"The SQLite database {alias!r} is not in WAL mode.",
        hint=f"Readers and workers wait for each other. Turn it on in DATABASES[{alias!r}]['OPTIONS']['init_command'].",
        id="django_workqueue.W006",
    )
