"""Who did it and why: kept where the admin keeps what its users do, and in the log."""

from __future__ import annotations

import getpass
import logging
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandParser
from django.db.models import Model

logger = logging.getLogger("django_workqueue.operate")

ADDITION, CHANGE, DELETION = 1, 2, 3
"""The flags of the admin's log. Its module cannot be imported where the admin is not installed."""


def add_author(parser: CommandParser) -> None:
    """Add who does it."""
    parser.add_argument("--by", help="Who does it (default: the name of the user in the system).")


@dataclass(frozen=True, slots=True)
class Scribe:
    """Writes down what ``name`` does: in the log, and with the changes that the admin shows if the site knows them."""

    name: str
    user_id: Any

    def write(self, row: Model, flag: int, text: str) -> None:
        """Note one change. Called in the transaction that makes it."""
        logger.info("%s: %s By %s.", row, text, self.name, extra={"row": str(row.pk), "by": self.name})
        if self.user_id is not None:
            entries: Any = apps.get_model("admin", "LogEntry")._default_manager
            entries.log_actions(self.user_id, [row], flag, text)


def author(options: dict[str, Any]) -> Scribe:
    """Return who writes for whoever runs the command."""
    name = name_of_author(options)
    return Scribe(name, _user_id(name) if apps.is_installed("django.contrib.admin") else None)


def name_of_author(options: dict[str, Any]) -> str:
    """Return the name of whoever runs the command: as given, or as the system knows them."""
    given: str | None = options["by"]
    if given:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may know no name for its user.
        return "manage.py"


def _user_id(name: str) -> Any:
    user = apps.get_model(settings.AUTH_USER_MODEL)
    column: str = getattr(user, "USERNAME_FIELD")  # noqa: B009 - known to models of users alone
    return user._default_manager.filter(**{column: name}).values_list("pk", flat=True).first()
