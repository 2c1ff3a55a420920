"""What every statement stands on: one database, its clock, its transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.models.expressions import Expression
from django.utils import timezone

from ..exceptions import QueueUnavailableError


class BaseStore:
    """
    One database that holds a queue, as seen from one thread. Subclasses in this package add the statements.

    ``pooled`` says that a transaction pooler may stand in between, so that nothing can be left in a session.
    """

    has_one_writer = False
    """Whether an open transaction that has written keeps every other connection from writing."""

    def __init__(self, alias: str = DEFAULT_DB_ALIAS, *, pooled: bool = False) -> None:
        self.alias = alias
        self.pooled = pooled
        self._prepared: object = None

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The calling thread's own connection."""
        return connections[self.alias]

    def now(self) -> datetime:
        """Return the time by the clock that stamps and judges every row of this database."""
        return timezone.now()

    def clock(self) -> datetime | Expression:
        """Return the same time for use inside a statement."""
        return self.now()

    def prepare(self) -> bool:
        """
        Make the calling thread's connection fit for a worker's statements, and return whether it is a new one.

        Cheap when it already is fit. Raises OperationalError when the database cannot be reached.
        """
        # In a transaction, a test case's for instance, autocommit is off, which Django takes for a broken connection.
        if not self.connection.in_atomic_block:
            close_if_worn(self.connection)
        # With DEBUG on, the log of queries only grows: no request ends in a worker. A test's own log is left alone.
        if not self.connection.force_debug_cursor:
            self.connection.queries_log.clear()
        self.connection.ensure_connection()
        is_new = self.connection.connection is not self._prepared
        self._prepared = self.connection.connection
        return is_new

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block in one transaction, joining the caller's where there is one."""
        with transaction.atomic(using=self.alias):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a block in a transaction that may write from its first statement on, whatever it reads before."""
        with self.transaction():
            yield

    def pin(self) -> None:
        """Make the open transaction, on a connection that ``prepare`` has not seen, fit for a worker's statements."""

    def transaction_depth(self) -> int:
        """Return how many blocks of a transaction are open on the calling thread's connection."""
        connection = self.connection
        if not connection.in_atomic_block and connection.connection is not None:
            return int(has_open_transaction(connection))
        return len(connection.atomic_blocks)

    def on_commit(self, func: Any) -> None:
        """Call ``func()`` once the caller's transaction is committed, at once without one. Errors are logged."""
        transaction.on_commit(func, using=self.alias, robust=True)

    @contextmanager
    def reachable(self, operation: str) -> Iterator[None]:
        """Turn a lost database into QueueUnavailableError, and let every other error pass as it is."""
        try:
            yield
        except (OperationalError, InterfaceError) as error:
            if self.is_unavailable(error):
                raise QueueUnavailableError(operation, self.alias) from error
            raise

    def is_unavailable(self, error: Exception) -> bool:
        """Whether ``error`` says that the database is away, as against a statement at fault."""
        return isinstance(error, OperationalError | InterfaceError)

    def _unheld(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Lock these rows as they are read, passing over those that another session holds; where rows can be locked."""
        if self.connection.features.has_select_for_update_skip_locked:
            return rows.select_for_update(skip_locked=True, of=("self",))
        return rows

    def is_locked(self, error: Exception) -> bool:  # noqa: ARG002 - where rows are not locked, none can be
        """Whether ``error`` says that another session held a row or a table for too long."""
        return False

    def connection_limit(self) -> int | None:
        """Return how many connections the database has for all its ordinary users together; None without a limit."""
        return None

    def notify(self, lanes: set[tuple[str, str]]) -> None:
        """Wake workers for these (queue, tenant) pairs, where the database can. Call it outside any transaction."""

    def call_to_cancel(self, lease_ids: Collection[int]) -> None:
        """Tell the workers that hold these leases to look for what is to be cancelled, where the database can."""

    def can_listen(self) -> bool:
        """Whether workers can hear of new jobs at once."""
        return False

    @contextmanager
    def listening(self) -> Iterator[Ear]:
        """Hold a connection of its own that hears notifications. Only where ``can_listen()``."""
        raise NotImplementedError(f"The database {self.alias!r} has no notifications.")
        yield


def close_if_worn(connection: BaseDatabaseWrapper) -> None:
    """
    Close a connection that is broken or older than the project's CONN_MAX_AGE.

    The default age, 0, means the end of a request. No request ends in a worker, and Django would take every connection
    for obsolete at once: a new one for each job and each round.
    """
    if not connection.settings_dict["CONN_MAX_AGE"]:
        connection.close_at = None
    connection.close_if_unusable_or_obsolete()


def has_open_transaction(connection: BaseDatabaseWrapper) -> bool:
    """
    Whether the driver is inside a transaction, also one that was begun by hand, of which Django knows nothing.

    Left open, it swallows what the thread's next jobs write, and on SQLite it may keep every other worker from writing.
    """
    match connection.vendor:
        case "sqlite":
            return bool(connection.connection.in_transaction)
        case "postgresql":
            return bool(connection.connection.info.transaction_status)  # IDLE is 0
        case _:
            return False


class CancelCall(NamedTuple):
    """Word that jobs under these leases are to be cancelled; which, the database says."""

    lease_ids: frozenset[int]


Message = set[tuple[str, str]] | CancelCall | None
"""What can be heard: (queue, tenant) pairs with new work, a cancel call, None for an answered probe."""


class Ear(Protocol):
    """A connection that hears notifications."""

    def hear(self, seconds: float) -> Iterator[Message]:
        """Yield what comes within ``seconds``."""

    def probe(self) -> None:
        """Send a message to itself."""

    def cut(self) -> None:
        """Break the connection, from any thread, so that whatever waits for its answer fails."""
