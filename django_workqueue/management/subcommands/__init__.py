"""The subcommands of ``manage.py workqueue``, by name."""

from __future__ import annotations

from .base import Subcommand
from .cancel import Cancel
from .dead import Dead
from .dead_letters import Acknowledge, Discard, Requeue
from .enqueue import Enqueue
from .export import Export
from .health import Health
from .jobs import Jobs, OneJob
from .pauses import Pause, Pauses, Resume
from .prune import Prune
from .schedules import Schedules
from .stats import Stats
from .steps import ResolveStep
from .worker import Worker
from .workers import Workers

SUBCOMMANDS: dict[str, Subcommand] = {
    "stats": Stats(),
    "health": Health(),
    "jobs": Jobs(),
    "job": OneJob(),
    "dead": Dead(),
    "export": Export(),
    "requeue": Requeue(),
    "acknowledge": Acknowledge(),
    "discard": Discard(),
    "cancel": Cancel(),
    "resolve-step": ResolveStep(),
    "enqueue": Enqueue(),
    "workers": Workers(),
    "worker": Worker(),
    "pause": Pause(),
    "resume": Resume(),
    "pauses": Pauses(),
    "prune": Prune(),
    "schedules": Schedules(),
}
