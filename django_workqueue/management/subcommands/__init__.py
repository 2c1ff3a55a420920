"""The subcommands of ``manage.py workqueue``, by name."""

from __future__ import annotations

from .base import Subcommand
from .cancel import Cancel
from .pauses import Pause, Pauses, Resume
from .prune import Prune
from .schedules import Schedules
from .stats import Stats

SUBCOMMANDS: dict[str, Subcommand] = {
    "cancel": Cancel(),
    "pause": Pause(),
    "resume": Resume(),
    "pauses": Pauses(),
    "prune": Prune(),
    "schedules": Schedules(),
    "stats": Stats(),
}
