"""What the commands have in common."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, SystemCheckError

from ..worker.process import EXIT_USAGE


class QueueCommand(BaseCommand):
    """A command for which settings that cannot work are a fault of usage."""

    def check(self, *args: Any, **given: Any) -> None:
        """Run the system checks."""
        # Of no database: from Django 6.1 on, checks of models ask each for its version, and a worker waits for its own.
        given.setdefault("databases", [])
        try:
            super().check(*args, **given)
        except SystemCheckError as error:
            error.returncode = EXIT_USAGE
            raise
