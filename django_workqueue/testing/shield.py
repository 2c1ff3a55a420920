"""Running a body inside a transaction that is not its own, as if there were none: a test case's, or a caller's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger("django_workqueue.testing")


@contextmanager
def shielded(*, commits: bool) -> Iterator[None]:
    """
    Keep a database error in the block from breaking the transactions that are open around it.

    Each of them gets a savepoint. It is rolled back only where the block broke the transaction, so that, as in a
    worker, what a body wrote before it failed for another reason stays. With ``commits``, the callbacks that the block
    left for after the commit run at its end; without, they stay with the surrounding transaction.
    """
    guards = [_Guard(connection) for connection in connections.all(initialized_only=True) if connection.in_atomic_block]
    try:
        yield
    finally:
        callbacks = [callback for guard in reversed(guards) for callback in guard.leave(take_callbacks=commits)]
    for callback in callbacks:
        with shielded(commits=True):
            callback()


class _Guard:
    """A savepoint on one connection, and how many callbacks waited for its commit before."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._savepoint = connection.savepoint()
        self._waiting = len(connection.run_on_commit)

    def leave(self, *, take_callbacks: bool) -> list[Callable[[], object]]:
        """Release the savepoint, or roll back to it where that is the only way on. Return the callbacks taken over."""
        connection = self._connection
        is_broken = connection.needs_rollback or not connection.is_usable()
        if self._savepoint is not None:
            if is_broken:
                connection.set_rollback(False)
                connection.savepoint_rollback(self._savepoint)
            connection.savepoint_commit(self._savepoint)
        if not is_broken and not take_callbacks:
            return []
        left = connection.run_on_commit[self._waiting :]
        del connection.run_on_commit[self._waiting :]
        return [] if is_broken else [partial(_call, *callback) for callback in left]


def _call(_savepoints: object, func: Callable[[], object], robust: bool) -> None:
    """Call what ``transaction.on_commit`` was given. What a robust one raises is logged, as Django does."""
    try:
        func()
    except Exception:
        if not robust:
            raise
        logger.exception("The callback %r, for after the commit, failed.", func)
