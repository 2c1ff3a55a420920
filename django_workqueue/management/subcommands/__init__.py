"""The subcommands of ``manage.py workqueue``, by name."""

from __future__ import annotations

from .base import Subcommand
from .pauses import Pause, Pauses, Resume
from .prune import Prune
from .schedules import Schedules
from .stats import Stats

SUBCOMMANDS: dict[str, Subcommand] = {
    "pause": Pause(),
    "pauses": Pauses(),
    "prune": Prune(),
    "resume": Resume(),
    "schedules": Schedules(),
    "stats": Stats(),
}
