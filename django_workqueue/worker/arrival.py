"""What a worker looks at before it registers: the database, its migrations, room for its connections."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.db.migrations.executor import MigrationExecutor

from ..store import Store
from .options import WorkerOptions
from .shutdown import StopRequest
from .thread import Backoff

logger = logging.getLogger("django_workqueue.worker")

OWN_CONNECTIONS = 4
"""Connections of a worker's own threads; each slot may need one more."""


def wait_for_database(store: Store, stop: StopRequest, beat: Callable[[], None]) -> bool:
    """Connect, waiting for a server that is not there yet, with a beat for each try. False when told to stop."""
    backoff = Backoff()
    while not stop.requested:
        beat()
        try:
            store.prepare()
        except (OperationalError, InterfaceError) as error:
            wait = backoff.failed()
            logger.warning("The database %r cannot be reached (%s); next try in %.1f s.", store.alias, error, wait)
            stop.wait(wait)
        else:
            return True
    return False


def missing_migration(store: Store) -> str:
    """Return the first migration of the app that is not applied, "" when all are."""
    executor = MigrationExecutor(store.connection)
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == "django_workqueue"]
    plan = executor.migration_plan(targets)
    return next((migration.name for migration, _ in plan if migration.app_label == "django_workqueue"), "")


def warn_of_connections(store: Store, options: WorkerOptions) -> None:
    """Warn when the database cannot hold the connections of all processes that are started here."""
    needed = (options.processes or 1) * (OWN_CONNECTIONS + options.concurrency)
    limit = store.connection_limit()
    if limit is not None and needed > limit:
        logger.warning(
            "These workers may need %d connections, and the database allows %d in all. Give them fewer slots or "
            "processes, or raise max_connections.",
            needed,
            limit,
        )
