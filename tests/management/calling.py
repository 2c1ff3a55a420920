"""Calling ``manage.py workqueue`` in this process, and reading what it says."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command


def call(*arguments: str) -> str:
    """Return what the command prints."""
    out = StringIO()
    call_command("workqueue", *arguments, stdout=out)
    return out.getvalue()


def report(*arguments: str):
    """Return what the command reports to a program."""
    return json.loads(call(*arguments, "--format=json"))


def failing(*arguments: str):
    """Return what a command reports that ends with exit code 1."""
    out = StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("workqueue", *arguments, "--format=json", stdout=out)
    assert caught.value.code == 1
    return json.loads(out.getvalue())


def refused(*arguments: str) -> str:
    """Return the complaint about a usage that cannot work."""
    with pytest.raises(CommandError) as caught:
        call(*arguments)
    assert caught.value.returncode in {1, 2}
    return str(caught.value)
