"""Notifications on PostgreSQL: how lanes are written into a message, and the connection that hears them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

from .base import CancelCall, Ear, Message
from .orm import OrmStore
from .reap import Lanes

logger = logging.getLogger("django_workqueue.store")

CHANNEL = "django_workqueue"
# PostgreSQL refuses payloads of 8000 bytes; longer lists of lanes are sent in parts.
_PAYLOAD_BYTES = 7500
_MOST_IDS = 300
_CANCEL = "cancel"


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


def cancel_messages(lease_ids: Collection[int]) -> Iterator[str]:
    """Yield the ids as message texts. Workers of a release that does not know them ignore them."""
    ids = sorted(lease_ids)
    for first in range(0, len(ids), _MOST_IDS):
        yield json.dumps({_CANCEL: ids[first : first + _MOST_IDS]})


def read(message: str) -> Message:
    """Return what a message says; whatever else comes over the channel is ignored, for anyone may send there."""
    try:
        said = json.loads(message)
        if isinstance(said, dict):
            return CancelCall(frozenset(pk for pk in said[_CANCEL] if isinstance(pk, int)))
        return {(queue, tenant) for queue, tenant in said if isinstance(queue, str) and isinstance(tenant, str)}
    except (ValueError, TypeError, KeyError):
        logger.debug("A notification could not be read.")
        return set()


class NotifyingStore(OrmStore):
    """A store that notifies and hears."""

    def notify(self, lanes: Lanes) -> None:
        """Wake every listening worker, in as few messages as the lanes' names allow."""
        self._send(messages(lanes))

    def call_to_cancel(self, lease_ids: Collection[int]) -> None:
        """Tell every listening worker; whoever holds the leases looks."""
        self._send(cancel_messages(lease_ids))

    def _send(self, texts: Iterable[str]) -> None:
        with self.connection.cursor() as cursor:
            for text in texts:
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, text])

    def can_listen(self) -> bool:
        """Whether workers can hear of new jobs at once: yes."""
        return True

    @contextmanager
    def listening(self) -> Iterator[Ear]:
        """Hold a connection of its own that hears notifications."""
        with open_ear(self.connection) as ear:
            yield ear


class PostgresEar:
    """Hears the common channel, and one of its own for probes."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._own_channel = f"{CHANNEL}_{uuid4().hex}"
        for channel in (CHANNEL, self._own_channel):
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

    def hear(self, seconds: float) -> Iterator[Message]:
        """Yield what comes within ``seconds``, returning after the first message."""
        for notification in self._connection.notifies(timeout=seconds, stop_after=1):
            yield None if notification.channel == self._own_channel else read(notification.payload)

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
