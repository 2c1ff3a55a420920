"""The tutorial is played as a reader would: its files written, its commands run, its answers compared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import django
import pytest

from .pages import ROOT, Block, blocks, matches

PAGE = "docs/tutorial/first-queue.md"

RUN_SESSION = """
import doctest, sys, django
django.setup()
session = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, "session", None, 0)
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
sys.exit(doctest.DocTestRunner(optionflags=flags).run(session).failed)
"""


class Reader:
    """Somebody who does what the tutorial says, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
            "DJANGO_SETTINGS_MODULE": "mysite.settings",
        }

    def follow(self, block: Block) -> None:
        """Do what one block says."""
        match block.language:
            case "python":
                self.write(block)
            case "pycon":
                self.converse(block.text)
            case "console":
                for command, answer in commands(block.text):
                    self.type(command, answer)

    def write(self, block: Block) -> None:
        """Write a file, or add to it, as the caption says."""
        path = self.folder / block.file
        if "Django 5.2" in block.remark and django.VERSION >= (6, 0):
            return
        if "add" in block.remark:
            path.write_text(f"{path.read_text()}\n\n{block.text}")
        elif "replace" in block.remark:
            kept, first_line, _ = path.read_text().rpartition(block.text.splitlines()[0])
            assert first_line, f"{block.caption}: there is nothing to replace"
            path.write_text(kept + block.text)
        else:
            path.write_text(block.text)

    def converse(self, session: str) -> None:
        """Type a session of the shell, and compare what it answers."""
        done = self.run([sys.executable, "-c", RUN_SESSION], session)
        assert done.returncode == 0, done.stdout

    def type(self, command: str, answer: str) -> None:
        """Run a command, and compare what it prints."""
        done = self.run(["/bin/sh", "-c", f"exec {command}"])
        printed = done.stdout + ("Killed\n" if done.returncode == -signal.SIGKILL else "")
        assert matches(answer, printed), f"$ {command}\n{printed}\n-- expected --\n{answer}"

    def run(self, command: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a process with both outputs in one."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            input=given,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console, each with what it is shown to print."""
    for part in ("\n" + text).split("\n$ ")[1:]:
        command, _, answer = part.partition("\n")
        yield command, answer


@pytest.mark.acceptance
@pytest.mark.sqlite
@pytest.mark.timeout(300)
def test_tutorial_works_as_it_is_written(tmp_path):
    """Who copies every step sees what the page shows, down to the job that outlives its worker."""
    reader = Reader(tmp_path)

    for block in blocks(PAGE, "python", "pycon", "console"):
        reader.follow(block)
