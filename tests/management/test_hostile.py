"""What the commands print steers no terminal, whatever stands in the rows that they tell of."""

from __future__ import annotations

import argparse
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_workqueue.management.subcommands import SUBCOMMANDS
from tests.hostile import PAYLOADS, assert_harmless_output, make_all, written

pytestmark = pytest.mark.django_db


@pytest.fixture(params=PAYLOADS)
def payload(request):
    """Return each of the hostile texts."""
    return PAYLOADS[request.param]


@pytest.fixture
def rows(payload):
    """Make the hostile rows."""
    return make_all(payload)


def usages(rows, text):
    """Return how each subcommand is called so that it tells of the hostile rows; those not listed need nothing."""
    job, dead = str(rows["job"].pk), str(rows["deadletter"].pk)
    listed = [[f"--queue={rows['job'].queue}"], [f"--task={text[:300]}"], ["--state=succeeded"], ["--state=leased"]]
    return {
        "stats": [[], [f"--queue={rows['job'].queue}"]],
        "health": [[], ["--max-dead=0", "--max-age=1s", "--max-backlog=0"], [f"--queues={text}"]],
        "jobs": [[], *listed],
        "job": [[each, *more] for each in (job, dead) for more in ([], ["--values"], ["--values", "--reveal"])],
        "dead": [[], ["--groups"], [f"--after={text}"]],
        "requeue": [
            [dead, f"--to-queue={text}"],
            [dead, "--args=[1]"],
            ["--all", "--dry-run"],
            ["--all", f"--note={text}"],
        ],
        "acknowledge": [["--all", f"--note={text}", f"--by={text[:150]}"], [dead, f"--by={text[:150]}"], [dead]],
        "discard": [["--all", f"--note={text}"]],
        "cancel": [["--all"], [job]],
        "resolve-step": [[job, rows["job"].task, "--happened"], [job, text, "--did-not-happen"]],
        "enqueue": [[text], ["tests.samples.add", f"--key={text}", "--args=[1,2]"], [f"tests.samples.{text}"]],
        "pause": [[f"--{kind}={text[:100]}", f"--by={text[:150]}"] for kind in ("queue", "tenant", "task")],
        "resume": [[f"--queue={rows['pause'].name}"], [f"--task={text[:300]}"]],
        "worker": [[act, each] for act in ("quiet", "stop", "resume", "forget") for each in (rows["worker"].pk, text)],
    }


def said(name, *options):
    """Return all that a subcommand prints, complaints included."""
    out, err = StringIO(), StringIO()
    try:
        call_command("workqueue", name, *options, stdout=out, stderr=err)
    except CommandError as error:
        err.write(str(error))
    except SystemExit:
        pass
    return out.getvalue() + err.getvalue()


def needs_options(subcommand):
    """Whether a subcommand cannot be called by its name alone."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    subcommand.add_arguments(parser)
    groups = any(group.required for group in parser._mutually_exclusive_groups)
    return groups or any(each.required or (not each.option_strings and each.nargs is None) for each in parser._actions)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_output_steers_no_terminal(rows, payload, name):
    """An escape sequence in an error can write into the title, the clipboard or the line above."""
    text = written(payload, 400).replace("\x00", "")
    calls = usages(rows, text).get(name, [[]])
    assert not (needs_options(SUBCOMMANDS[name]) and calls == [[]]), "say in usages() how it is called"

    for options in calls:
        assert_harmless_output(said(name, *options))


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_report_for_programs_is_json_in_plain_characters(rows, payload, name):
    """A program reads back what was stored, and a person may look at it too."""
    text = written(payload, 400).replace("\x00", "")

    for options in usages(rows, text).get(name, [[]]):
        shown = said(name, *options, "--format=json")
        assert_harmless_output(shown)
        for line in shown.split("\n"):
            if line.startswith(("{", "[")):
                json.loads(line)
