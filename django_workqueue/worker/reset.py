"""Leaving no trace of one job for the next: connections, transactions and query logs of the calling thread."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from django.db import Error, connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

from ..store.base import close_if_worn, has_open_transaction


class _Thread(threading.local):
    """Whether the calling thread ever opened a connection: looking through all aliases costs more than a short job."""

    has_connected = False


_thread = _Thread()


@receiver(connection_created)
def _note_connection(**_kwargs: Any) -> None:
    _thread.has_connected = True


def reset_connections() -> None:
    """
    Make every connection that this thread opened as good as new; the sound ones stay open.

    A job may leave a transaction open or broken, or autocommit off; the next one would run inside it.
    """
    if not _thread.has_connected:
        return
    for connection in connections.all(initialized_only=True):
        try:
            entangled = connection.connection is not None and _is_entangled(connection)
            if not entangled:
                close_if_worn(connection)
        except Exception:  # noqa: BLE001 - of a connection that the job closed itself, its driver raises what it likes
            entangled = True
        if entangled:
            _drop(connection)
    # With DEBUG on, each thread keeps its queries: without a request to end, the log only grows.
    reset_queries()


def drop_connections() -> None:
    """Throw away every connection of this thread: an error that was raised in it may have hit one in mid-sentence."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _drop(connection)


def close_connections() -> None:
    """Close every connection of this thread, which is about to end."""
    for connection in connections.all(initialized_only=True):
        with contextlib.suppress(Error):
            connection.close()


def _is_entangled(connection: BaseDatabaseWrapper) -> bool:
    wants_autocommit = connection.settings_dict["AUTOCOMMIT"]
    return (
        connection.in_atomic_block
        or bool(connection.run_on_commit)
        or connection.autocommit != wants_autocommit
        or has_open_transaction(connection)
    )


def _drop(connection: BaseDatabaseWrapper) -> None:
    """
    Throw a connection away with its state; Django's own close() would be put off to the end of the block.

    Rolled back first: on SQLite a closed connection keeps its lock while a cursor of it lives, in a traceback say.
    """
    for end in (connection.connection.rollback, connection.connection.close):
        with contextlib.suppress(Exception):
            end()
    del connections[connection.alias]
