"""The subcommands of ``manage.py workqueue``, by name."""

from __future__ import annotations

from .base import Subcommand
from .cancel import Cancel
from .dead_letters import Dead, Discard, Requeue
from .enqueue import Enqueue
from .health import Health
from .jobs import Jobs, OneJob
from .pauses import Pause, Pauses, Resume
from .prune import Prune
from .schedules import Schedules
from .stats import Stats
from .workers import Workers

SUBCOMMANDS: dict[str, Subcommand] = {
    "stats": Stats(),
    "health": Health(),
    "jobs": Jobs(),
    "job": OneJob(),
    "dead": Dead(),
    "requeue": Requeue(),
    "discard": Discard(),
    "cancel": Cancel(),
    "enqueue": Enqueue(),
    "workers": Workers(),
    "pause": Pause(),
    "resume": Resume(),
    "pauses": Pauses(),
    "prune": Prune(),
    "schedules": Schedules(),
}
