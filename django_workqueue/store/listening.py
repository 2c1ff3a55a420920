"""Notifications on PostgreSQL: how lanes are written into a message, and the connection that hears them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

from .reap import Lanes

logger = logging.getLogger("django_workqueue.store")

CHANNEL = "django_workqueue"
# PostgreSQL refuses payloads of 8000 bytes; longer lists of lanes are sent in parts.
_PAYLOAD_BYTES = 7500


def messages(lanes: Lanes) -> Iterator[str]:
    """Yield the lanes as message texts, JSON lists of [queue, tenant], each short enough to be sent."""
    batch: list[tuple[str, str]] = []
    for lane in sorted(lanes):
        if batch and len(json.dumps([*batch, lane])) > _PAYLOAD_BYTES:
            yield json.dumps(batch)
            batch = []
        batch.append(lane)
    if batch:
        yield json.dumps(batch)


def lanes_in(message: str) -> Iterator[tuple[str, str]]:
    """Yield the lanes of a message; whatever else comes over the channel is ignored, for anyone may send there."""
    try:
        for queue, tenant in json.loads(message):
            if isinstance(queue, str) and isinstance(tenant, str):
                yield queue, tenant
    except (ValueError, TypeError):
        logger.debug("A notification could not be read.")


class PostgresEar:
    """Hears the common channel, and one of its own for probes."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._own_channel = f"{CHANNEL}_{uuid4().hex}"
        for channel in (CHANNEL, self._own_channel):
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

    def hear(self, seconds: float) -> Iterator[Lanes | None]:
        """Yield what comes within ``seconds``, returning after the first message."""
        for notification in self._connection.notifies(timeout=seconds, stop_after=1):
            yield None if notification.channel == self._own_channel else set(lanes_in(notification.payload))

    def probe(self) -> None:
        """Send a message to itself."""
        self._connection.execute("SELECT pg_notify(%s, '')", [self._own_channel])

    def cut(self) -> None:
        """Break the connection, from any thread. Closing it would wait for the statement that is to be ended."""
        with (
            contextlib.suppress(psycopg.Error, OSError),
            socket.socket(fileno=os.dup(self._connection.fileno())) as end,
        ):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def open_ear(wrapper: BaseDatabaseWrapper) -> Iterator[PostgresEar]:
    """Connect as ``wrapper`` would, but in autocommit: notifications come between transactions only."""
    parameters = wrapper.get_connection_params()
    ours = {"context", "cursor_factory", "prepare_threshold", "autocommit"}
    plain = {name: value for name, value in parameters.items() if name not in ours}
    with psycopg.connect(**plain, autocommit=True) as connection:
        yield PostgresEar(connection)
