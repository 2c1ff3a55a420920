"""A database of its own for a run, and the fleet that works on it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command
from django.db import connections

from testproject.localpg import LocalPostgres

from .fleet import Fleet

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class Stage:
    """What a run works with. ``server`` is None on SQLite."""

    folder: Path
    server: LocalPostgres | None
    fleet: Fleet


@contextmanager
def stage(database: str, **workqueue: Any) -> Iterator[Stage]:
    """Set Django up on a new, migrated database of that kind, with these keys of WORKQUEUE, and yield the stage."""
    with tempfile.TemporaryDirectory(prefix="dwq-bench-") as name:
        folder = Path(name)
        server = LocalPostgres() if database == "postgresql" else None
        with server or nullcontext():
            url = server.url if server else f"sqlite:///{folder}/db.sqlite3"
            os.environ |= {
                "DATABASE_URL": url,
                "DJANGO_SETTINGS_MODULE": "testproject.settings",
                "DEBUG": "false",
                "PYTHONPATH": str(ROOT),
                "WORKQUEUE": json.dumps({key.upper(): value for key, value in workqueue.items()}),
            }
            django.setup()
            call_command("migrate", verbosity=0)
            with Fleet(os.environ, folder) as fleet:
                yield Stage(folder, server, fleet)
            connections.close_all()
