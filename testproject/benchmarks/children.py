"""Processes that are asked for one thing and answer with JSON on their last line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from .errors import BenchmarkError

ACTORS = ("-m", "testproject.benchmarks.actors")
MANAGE = ("-m", "django")
_PATIENCE_SECONDS = 1800


def run(environment: Mapping[str, str], *arguments: str) -> str:
    """Run Python with ``arguments`` and return what it prints. Raises BenchmarkError when it fails."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_SECONDS,
    )
    if done.returncode:
        command = " ".join(arguments)
        raise BenchmarkError(f"python {command!r} ended with exit code {done.returncode}.\n{done.stdout}{done.stderr}")
    return done.stdout


def ask(environment: Mapping[str, str], *arguments: str) -> Any:
    """Run an actor and return its answer."""
    return json.loads(run(environment, *ACTORS, *arguments).splitlines()[-1])


def migrate(environment: Mapping[str, str]) -> None:
    """Create the tables of the project that ``environment`` names."""
    run(environment, *MANAGE, "migrate", "--verbosity", "0")
