"""From a stored path to the task, and how its function wants to be called."""

from __future__ import annotations

import sys

import pytest

from django_workqueue.domain.registry import call_plan, check_fit, resolve, wants_context, with_context
from django_workqueue.exceptions import ArgumentsDoNotFitError, TaskNotRegisteredError
from tests import samples


@pytest.fixture(autouse=True)
def _nothing_remembered():
    resolve.cache_clear()
    yield
    resolve.cache_clear()


def test_path_leads_to_its_task():
    """The path is what the task calls itself."""
    assert resolve(samples.add.module_path) is samples.add
    assert resolve("tests.samples.plain") is samples.plain


@pytest.mark.parametrize(
    "path",
    [
        "",
        "add",
        "tests.samples.was_here_once",
        "no.such.module.task",
        "tests.samples.not_a_task",
        "tests.samples",
        "os.path",
        "..",
    ],
)
def test_path_that_leads_nowhere_is_named_with_the_remedy(path):
    """Whatever goes wrong on the way is one error (collectiveidea/delayed_job#77)."""
    with pytest.raises(TaskNotRegisteredError, match="ALIASES") as caught:
        resolve(path)

    assert caught.value.path == path


def test_module_that_breaks_on_import_is_no_crash(monkeypatch, tmp_path):
    """Its error is quoted, and the worker goes on."""
    (tmp_path / "broken_tasks.py").write_text("raise RuntimeError('no configuration')")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(TaskNotRegisteredError, match="RuntimeError: no configuration"):
        resolve("broken_tasks.send")


def test_failure_is_not_remembered(monkeypatch, tmp_path):
    """The module may be there after the next deploy."""
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TaskNotRegisteredError):
        resolve("late_tasks.add")
    (tmp_path / "late_tasks.py").write_text("from tests.samples import add")
    monkeypatch.delitem(sys.modules, "late_tasks", raising=False)

    assert resolve("late_tasks.add") is samples.add


def test_former_path_is_followed_by_its_alias(settings):
    """A task was renamed while jobs waited (Betterment/delayed#23)."""
    settings.WORKQUEUE = {"ALIASES": {"shop.old.send": "tests.samples.send"}}

    assert resolve("shop.old.send") is samples.send
    assert resolve("tests.samples.send") is samples.send


def test_change_of_aliases_takes_effect(settings):
    """What was found under the old settings is forgotten."""
    settings.WORKQUEUE = {"ALIASES": {"old": "tests.samples.send"}}
    assert resolve("old") is samples.send
    settings.WORKQUEUE = {"ALIASES": {"old": "tests.samples.add"}}

    assert resolve("old") is samples.add


# -- how a function is called ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "wants"),
    [
        (samples.add, False),
        (samples.describe, True),
        (samples.describe_ctx, True),
        (samples.plain_with_context, True),
        (samples.injected, False),
    ],
)
def test_context_goes_to_those_who_ask(task, wants):
    """By ``takes_context``, or by a parameter named ctx that nobody else fills."""
    assert wants_context(task) is wants


def test_context_is_the_first_argument_or_ctx():
    """And the caller's arguments stay as they are."""
    assert with_context(samples.describe, [1], {"a": 2}, "C") == (["C", 1], {"a": 2})
    assert with_context(samples.describe_ctx, ["hello"], {}, "C") == (["hello"], {"ctx": "C"})
    assert with_context(samples.add, [1], {"right": 2}, "C") == ([1], {"right": 2})


def test_injected_ctx_wins_over_ours():
    """A default belongs to whoever gave it, an injector for instance."""
    assert with_context(samples.injected, [], {}, "C") == ([], {})


def test_ctx_that_the_caller_passed_is_left():
    """It is an argument like any other then."""
    assert with_context(samples.describe_ctx, ["hello"], {"ctx": "mine"}, "C") == (["hello"], {"ctx": "mine"})


def test_plan_of_a_function_is_made_once():
    """Signatures are slow to read."""
    assert call_plan(samples.add.func) is call_plan(samples.add.func)


@pytest.mark.parametrize(
    ("task", "args", "kwargs"),
    [
        (samples.add, [1, 2], {}),
        (samples.add, [1], {"right": 2}),
        (samples.send, ["a"], {"copy": True}),
        (samples.describe, [], {}),
        (samples.describe_ctx, ["hello"], {}),
        (samples.injected, [], {}),
    ],
)
def test_fitting_arguments_pass(task, args, kwargs):
    """The context is not the caller's to give."""
    check_fit(task, args, kwargs)


@pytest.mark.parametrize(
    ("task", "args", "kwargs", "words"),
    [
        (samples.add, [], {}, "left"),
        (samples.add, [1, 2, 3], {}, "too many"),
        (samples.add, [1], {"rihgt": 2}, "right"),
        (samples.send, ["a", True], {}, "too many"),
        (samples.describe, [1], {}, "too many"),
    ],
)
def test_arguments_that_do_not_fit_say_why(task, args, kwargs, words):
    """The message names the task and the parameter (OctopusDeploy/Issues#3880)."""
    with pytest.raises(ArgumentsDoNotFitError, match=words) as caught:
        check_fit(task, args, kwargs)

    assert caught.value.path == task.module_path
    assert isinstance(caught.value, TypeError)
