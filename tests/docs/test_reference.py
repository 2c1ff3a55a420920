"""The reference lists what the code has: no more, no less, and with the same defaults."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import MISSING, fields

import pytest
from django.core.management import CommandParser
from django.dispatch import Signal

import django_workqueue
from django_workqueue import (
    BackoffPolicy,
    Call,
    JobContext,
    Timetable,
    WorkflowHandle,
    WorkTask,
    conf,
    exceptions,
    signals,
    testing,
)
from django_workqueue.domain import states
from django_workqueue.domain.graphs import MOST_DEPTH, MOST_MEMBERS
from django_workqueue.lifecycle import clashes, copying, dead_letters, exporting, moving, operate, pausing, workers
from django_workqueue.management.commands.runworkers import Command
from django_workqueue.store.watch import COUNT_CAP, QueueStats
from django_workqueue.testing import Attempt
from django_workqueue.worker import process
from django_workqueue.workflows import Graph

from .pages import ROOT, headings, prose, read, rows, section

REFERENCE = "docs/reference"
SOURCES = "\n".join(path.read_text() for path in (ROOT / "django_workqueue").rglob("*.py"))


def first_cells(text):
    """Return the first cell of every row."""
    return [cells[0] for cells in rows(text)]


def public(owner):
    """Return the public names that a class makes itself."""
    names = {name for name, value in vars(owner).items() if isinstance(value, property) or inspect.isfunction(value)}
    return {name for name in names | {field.name for field in fields(owner)} if not name.startswith("_")}


# -- settings ----------------------------------------------------------------------------------------------------


def documented_settings():
    """Return key, unit and default of every row on the page of settings."""
    return {cells[0]: cells[1:3] for cells in rows(prose(f"{REFERENCE}/settings.md"))}


def test_every_setting_is_documented():
    """A key that is missing here is one that nobody finds; a key too many is one that the checks refuse."""
    assert documented_settings().keys() == conf.ALL_KEYS
    per_queue = section(f"{REFERENCE}/settings.md", "What holds for the jobs of a queue")
    assert set(first_cells(per_queue)) == conf.QUEUE_KEYS


@pytest.mark.parametrize("key", sorted(conf.ALL_KEYS))
def test_documented_default_is_the_default(key):
    """Setting a key to its documented default changes nothing."""
    _, default = documented_settings()[key]

    with_default = conf._Reader()
    settings = with_default.settings({key: ast.literal_eval(default)})

    assert with_default.faults == []
    assert settings == conf.Settings()


KEYS = {**conf.POLICY_KEYS, **conf.BACKOFF_KEYS, **conf.LIMIT_KEYS, **conf.APP_KEYS}


@pytest.mark.parametrize("key", sorted(KEYS))
def test_documented_unit_is_the_unit(key):
    """What is called a duration takes a timedelta, and nothing else does."""
    unit, _ = documented_settings()[key]
    _, parse = KEYS[key]

    assert (unit == "duration") == (parse in {conf._seconds, conf._positive_seconds, conf._optional_seconds})


# -- tasks -------------------------------------------------------------------------------------------------------


def decorator_options():
    """Return the options that ``@task`` declares."""
    tree = ast.parse((ROOT / "django_workqueue/tasks.py").read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "task"]
    return {argument.arg for node in found for argument in node.args.kwonlyargs}


def test_every_option_of_a_task_is_documented():
    """``@task`` and ``using`` take what the page says."""
    page = f"{REFERENCE}/tasks.md"
    of_one_job = {"run_after", "job_id"}
    using = set(inspect.signature(WorkTask.using).parameters) - {"self"}

    assert set(first_cells(section(page, "task"))) == decorator_options()
    assert set(first_cells(section(page, "WorkTask"))) == of_one_job
    of_the_task = {"takes_context", "atomic", "reject_on", "backoff", "timeout", "retention", "schedule"}
    assert using == decorator_options() - of_the_task | of_one_job


@pytest.mark.parametrize(("heading", "owner"), [("Call", Call), ("BackoffPolicy", BackoffPolicy)])
def test_every_field_is_documented(heading, owner):
    """The fields are those that can be given."""
    documented = first_cells(section(f"{REFERENCE}/tasks.md", heading))

    assert documented == [field.name for field in fields(owner)]


def test_every_field_of_a_timetable_is_documented():
    """With its default, in the order of the class."""
    documented = [(name, ast.literal_eval(default)) for name, default, _ in timetable_rows()]

    assert documented == [
        (field.name, field.default if field.default_factory is MISSING else field.default_factory())
        for field in fields(Timetable)
    ]


def timetable_rows():
    """Return the rows of the page on schedules."""
    return rows(section(f"{REFERENCE}/schedules.md", "Timetable"))


def test_documented_defaults_of_a_task_are_its_defaults():
    """What is left out has the value on the page."""
    defaults = {}
    for field in fields(WorkTask):
        if field.default is not MISSING or field.default_factory is not MISSING:
            defaults[field.name] = field.default if field.default_factory is MISSING else field.default_factory()

    for name, default, _ in rows(section(f"{REFERENCE}/tasks.md", "task")):
        assert ast.literal_eval(default) == defaults.get(name, ast.literal_eval(default))


def test_every_attribute_of_the_context_is_documented():
    """A task may rely on what is listed; the rest is how the context is made."""
    table = prose(f"{REFERENCE}/context.md").partition("\n## ")[0]
    documented = {cell.partition("(")[0] for cell in first_cells(table)}

    assert documented == public(JobContext) - {"load_result", "ledger", "link"}


# -- errors, signals, checks -------------------------------------------------------------------------------------


def own_errors():
    """Return every exception that the package defines for its users."""
    members = vars(exceptions).values()
    return [each for each in members if inspect.isclass(each) and each.__module__ == exceptions.__name__]


def test_every_error_has_a_heading():
    """Whoever looks up an error in a log finds it here, in the order of the module."""
    names = [error.__name__ for error in own_errors() if issubclass(error, BaseException)]

    assert [heading for heading in headings(f"{REFERENCE}/errors.md") if " " not in heading] == names


@pytest.mark.parametrize("error", [each for each in own_errors() if issubclass(each, exceptions.WorkQueueError)])
def test_table_of_errors_is_true(error):
    """The base class and what is retried are as listed."""
    table = {cells[0]: cells[1:] for cells in rows(prose(f"{REFERENCE}/errors.md"))}
    base, retryable = table[error.__name__]

    assert base in {parent.__name__ for parent in error.__bases__[-1:]}
    assert (retryable == "yes") == error.retryable


@pytest.mark.parametrize("error", own_errors())
def test_attributes_of_errors_are_documented(error):
    """What an error carries is told under its heading."""
    if not issubclass(error, exceptions.WorkQueueError) or "__init__" not in vars(error):
        return
    text = section(f"{REFERENCE}/errors.md", error.__name__)
    facts = re.findall(r"self\.(\w+) =", inspect.getsource(error))

    assert all(fact in text for fact in facts)


def test_reasons_of_a_lost_lease_are_documented():
    """The three reasons are those that the error explains."""
    rows_ = first_cells(section(f"{REFERENCE}/errors.md", "LeaseLostError"))

    assert set(rows_) == set(exceptions.LeaseLostError._explanations)


def test_reasons_of_an_unknown_step_are_documented():
    """They are those that the error explains."""
    rows_ = first_cells(section(f"{REFERENCE}/errors.md", "StepUnknownError"))

    assert set(rows_) == set(exceptions.StepUnknownError._explanations)


def test_every_signal_is_documented():
    """Each has a heading, and its arguments are those that the module names."""
    names = [name for name, value in vars(signals).items() if isinstance(value, Signal)]
    source = inspect.getsource(signals)

    assert headings(f"{REFERENCE}/signals.md")[: len(names)] == names
    for name in names:
        listed = re.search(rf'^{name} = Signal\(\)\n"""(.*?)"""', source, re.DOTALL | re.MULTILINE)[1]
        documented = first_cells(section(f"{REFERENCE}/signals.md", name))
        assert documented == re.findall(r"``(\w+)``", listed)


def test_every_check_has_a_heading():
    """An id in the output of ``check`` leads to a paragraph, and no paragraph is about an id that is gone."""
    ids = set(re.findall(r"django_workqueue\.[EWI]\d{3}", SOURCES))

    assert headings(f"{REFERENCE}/checks.md") == sorted(ids)


# -- the command -------------------------------------------------------------------------------------------------


def own_options():
    """Return the options that runworkers adds to those of every command."""
    parser = CommandParser(called_from_command_line=False)
    Command().add_arguments(parser)
    return {action.option_strings[-1]: action for action in parser._actions if "--help" not in action.option_strings}


def documented_options():
    """Return the cells behind each documented option."""
    return {cells[0]: cells[1:] for cells in rows(prose(f"{REFERENCE}/runworkers.md")) if cells[0].startswith("--")}


def test_every_option_of_runworkers_is_documented():
    """The page lists what ``--help`` lists, in its order."""
    assert list(documented_options()) == list(own_options())


@pytest.mark.parametrize("option", own_options())
def test_environment_of_runworkers_is_as_documented(option, monkeypatch):
    """A variable on the page sets the option, and an option without one has none."""
    variable, default, _ = documented_options()[option]
    assert bool(variable) == (own_options()[option].nargs is None)
    if not variable:
        return

    monkeypatch.setenv(variable, "7")

    assert own_options()[option].default == "7"
    monkeypatch.delenv(variable)
    if default.isdigit() or default == "*":
        assert own_options()[option].default == default


def test_exit_codes_are_documented():
    """A supervisor can be told what to do by the page."""
    codes = [int(cells[0]) for cells in rows(section(f"{REFERENCE}/runworkers.md", "Exit codes"))]

    assert codes == sorted(value for name, value in vars(process).items() if name.startswith("EXIT_"))


# -- operating ---------------------------------------------------------------------------------------------------


def test_every_operation_is_documented():
    """The functions for people have a heading each, with the parameters that they take."""
    page = f"{REFERENCE}/operate.md"
    parts = (operate, pausing, dead_letters, moving, copying, exporting, clashes, workers)
    internal = {"serves", "split_patterns", "matches", "pausable"}
    functions = {
        name: value
        for name, value in vars(operate).items()
        if inspect.isfunction(value)
        and value.__module__ in {part.__name__ for part in parts}
        and not name.startswith("_")
    }

    assert set(headings(page)) == functions.keys() - internal
    for name in headings(page):
        parameters = set(inspect.signature(functions[name]).parameters) - {"database"}
        assert all(parameter in section(page, name) for parameter in parameters)


def test_every_statistic_is_documented():
    """The page lists the fields of a queue's statistics, and the cap of its counts."""
    text = section(f"{REFERENCE}/statistics.md", "QueueStats")

    assert set(first_cells(text)) == public(QueueStats)
    assert f"{COUNT_CAP:,}" in text


def test_every_logger_is_documented():
    """Whoever configures logging knows all names and levels."""
    documented = set(first_cells(section(f"{REFERENCE}/statistics.md", "Log records")))
    loggers = set(re.findall(r'getLogger\("(django_workqueue\.\w+)"\)', SOURCES)) - {"django_workqueue.testing"}

    assert documented == loggers


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Live jobs", states.JobState),
        ("Finished jobs", states.Ending),
        ("Dead letters", states.DeathReason),
        ("Failures", states.FailureKind),
        ("Steps", states.StepState),
    ],
)
def test_every_word_of_a_row_is_documented(heading, words):
    """A word in the admin leads to its meaning."""
    assert set(first_cells(section(f"{REFERENCE}/states.md", heading))) == set(words.values)


@pytest.mark.parametrize(
    ("heading", "words"),
    [("States of a workflow", states.WorkflowState), ("States of a member", states.MemberState)],
)
def test_every_word_of_a_workflow_is_documented(heading, words):
    """As above, beside what the words are about."""
    assert set(first_cells(section(f"{REFERENCE}/workflows.md", heading))) == set(words.values)


def test_handle_and_options_of_workflows_are_documented():
    """What can be asked of a workflow, and set on a graph, is what the page lists."""
    page = f"{REFERENCE}/workflows.md"
    properties = [name for name, value in vars(WorkflowHandle).items() if isinstance(value, property)]

    assert first_cells(section(page, "WorkflowHandle")) == properties
    assert first_cells(section(page, "Graphs")) == list(inspect.signature(Graph.using).parameters)[1:]
    assert f"{MOST_DEPTH} levels" in read(page)
    assert f"{MOST_MEMBERS:,} members" in read(page)


def test_every_helper_for_tests_is_documented():
    """Each public name of the testing module has a heading, and an attempt's fields are listed."""
    page = f"{REFERENCE}/testing.md"

    assert {heading for heading in headings(page) if " " not in heading} == set(testing.__all__)
    assert first_cells(section(page, "Attempt")) == [field.name for field in fields(Attempt)]


@pytest.mark.parametrize("name", django_workqueue.__all__)
def test_every_public_name_is_in_the_reference(name):
    """What can be imported from the package is documented."""
    pages = "".join(read(f"{REFERENCE}/{page}.md") for page in ("tasks", "workflows", "schedules", "context", "errors"))

    assert re.search(rf"^#+ {name}$", pages, re.MULTILINE)
