"""The subcommands of ``manage.py workqueue``, by name."""

from __future__ import annotations

from .base import Subcommand
from .prune import Prune
from .stats import Stats

SUBCOMMANDS: dict[str, Subcommand] = {"prune": Prune(), "stats": Stats()}
