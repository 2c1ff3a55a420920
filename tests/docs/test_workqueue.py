"""docs/reference/workqueue.md against the command's parser and its reports."""

from __future__ import annotations

import re

import pytest
from django.core.management import CommandParser

from django_workqueue.management.commands.workqueue import Command
from django_workqueue.management.subcommands import SUBCOMMANDS, prune
from django_workqueue.store.watch import COUNT_CAP
from django_workqueue.worker.process import EXIT_CLEAN, EXIT_CRASHED, EXIT_USAGE

from .pages import headings, rows, section

PAGE = "docs/reference/workqueue.md"
EXIT_SECTION = "Exit codes"


def parsers():
    """Return the parser of each subcommand."""
    parser = CommandParser(called_from_command_line=False)
    Command().add_arguments(parser)
    [subparsers] = [action for action in parser._actions if action.dest == "subcommand"]
    return subparsers.choices


def own_options(name):
    """Return the options of a subcommand, each with its default."""
    return {
        action.option_strings[-1]: action.default
        for action in parsers()[name]._actions
        if action.option_strings and "--help" not in action.option_strings
    }


def documented(heading, level=2):
    """Return the options in a section's table, each with its default."""
    return {cells[0]: cells[1] for cells in rows(section(PAGE, heading, level=level)) if cells[0].startswith("--")}


def common():
    """Return the documented options of all subcommands: what stands in front of the first heading."""
    of_all = documented("workqueue", level=1)
    return {option: of_all[option] for option in ("--database", "--format")}


def test_every_subcommand_has_a_heading():
    """No more, no less, and in the parser's order."""
    assert headings(PAGE) == [*SUBCOMMANDS, EXIT_SECTION]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_option_is_documented(name):
    """The page lists what ``--help`` lists, in its order."""
    assert [*documented(name), *common()] == list(own_options(name))


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_documented_defaults_are_the_defaults(name):
    """What is left out has the value on the page."""
    for option, default in {**documented(name), **common()}.items():
        actual = own_options(name)[option]
        if actual is None:
            assert "settings" in default or default == "none"
        else:
            assert default == ("off" if actual is False else str(actual))


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_explains_itself(name):
    """Its help is the first line of its docstring."""
    assert parsers()[name].description == type(SUBCOMMANDS[name]).__doc__


def test_documented_limits_of_prune_are_its_limits():
    """The largest batch and the cap of the counts."""
    numbers = set(re.findall(r"\d+,\d{3}", section(PAGE, "prune")))

    assert numbers == {f"{prune.LARGEST_BATCH:,}", f"{COUNT_CAP:,}"}
    assert all(kind in section(PAGE, "prune") for kind in prune._KINDS)


def test_exit_codes_are_those_of_the_worker():
    """One number means one thing, whichever command it comes from."""
    codes = [int(cells[0]) for cells in rows(section(PAGE, EXIT_SECTION))]

    assert codes == [EXIT_CLEAN, EXIT_CRASHED, EXIT_USAGE]
