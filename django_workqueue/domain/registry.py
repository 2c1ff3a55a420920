"""From a stored dotted path to the task, and how its function wants to be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.module_loading import import_string

from ..conf import get_settings
from ..exceptions import ArgumentsDoNotFitError, TaskNotRegisteredError
from .contract import AnyTask, Task

CONTEXT_PARAMETER = "ctx"

_declared: dict[str, AnyTask] = {}


def note_declared(task: AnyTask) -> None:
    """Remember a task that this process has imported, by its path."""
    _declared[task.module_path] = task


def declared_tasks() -> list[AnyTask]:
    """Return the tasks that ``@task`` has made in this process, for whoever checks all of them."""
    return list(_declared.values())


@cache
def resolve(path: str) -> AnyTask:
    """
    Return the task stored under ``path``, following WORKQUEUE['ALIASES'].

    Raises TaskNotRegisteredError when the import fails or finds something else than a task. A success is remembered, a
    failure is not: the module may be there after the next deploy.
    """
    present = get_settings().aliases.get(path, path)
    try:
        found = import_string(present)
    except BaseException as error:  # a module may raise anything while it is imported, SystemExit too
        raise TaskNotRegisteredError(path, f"{type(error).__name__}: {error}") from error
    if not isinstance(found, Task):
        raise TaskNotRegisteredError(path, f"{present} is {type(found).__name__}, not a task")
    return found


@receiver(setting_changed)
def _forget(*, setting: str, **_kwargs: Any) -> None:
    if setting in {"WORKQUEUE", "TASKS"}:
        resolve.cache_clear()


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How a task's function is called."""

    signature: inspect.Signature
    wants_ctx: bool
    """Whether it names a ``ctx`` parameter that nobody else fills: another default than None belongs to an injector."""


@cache
def call_plan(func: Callable[..., Any]) -> CallPlan:
    """Return how ``func`` is called."""
    signature = inspect.signature(func)
    parameter = signature.parameters.get(CONTEXT_PARAMETER)
    wants_ctx = parameter is not None and (parameter.default is parameter.empty or parameter.default is None)
    return CallPlan(signature, wants_ctx)


def with_context(
    task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any], context: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments with ``context`` added where the task asks for it."""
    if task.takes_context:
        return [context, *args], dict(kwargs)
    if call_plan(task.func).wants_ctx and CONTEXT_PARAMETER not in kwargs:
        return list(args), {**kwargs, CONTEXT_PARAMETER: context}
    return list(args), dict(kwargs)


def check_fit(task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise ArgumentsDoNotFitError unless the task can be called with these arguments."""
    if wants_context(task):
        args, kwargs = with_context(task, args, kwargs, None)
    problem = _misfit(task.func, len(args), frozenset(kwargs))
    if problem:
        raise ArgumentsDoNotFitError(task.module_path, problem)


@lru_cache(maxsize=1024)
def _misfit(func: Callable[..., Any], count: int, names: frozenset[str]) -> str:
    """Return why ``func`` cannot be called with so many arguments and these keywords, "" when it can."""
    try:
        call_plan(func).signature.bind(*[None] * count, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return ""


def positional_names(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str] | None:
    """Return the names of positional arguments; None when the task cannot be found, or cannot be called like that."""
    if not args:
        return []
    try:
        task = resolve(path)
        check_fit(task, args, kwargs)
    except (TaskNotRegisteredError, TypeError, ValueError):
        return None
    parameters = list(call_plan(task.func).signature.parameters.values())[int(task.takes_context) :]
    named = [each.name for each in parameters if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}]
    others = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]
    return [*named[: len(args)], *others * (len(args) - len(named))]


def wants_context(task: AnyTask) -> bool:
    """Whether the task asks for its JobContext."""
    return task.takes_context or call_plan(task.func).wants_ctx
