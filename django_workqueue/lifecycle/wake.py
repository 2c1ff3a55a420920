"""
Waking idle workers after a commit.

A notification inside the caller's transaction would take a lock that serialises every commit of the cluster, so it goes
out afterwards. A lane that was notified within the last ``QUIET_SECONDS`` is not notified again; workers look at a lane
once more when that time is over, so that what was suppressed is found without a message of its own.
"""

from __future__ import annotations

import logging
import time

from django.db import Error

from ..store import Store
from ..store.reap import Lanes

logger = logging.getLogger("django_workqueue.enqueue")

QUIET_SECONDS = 0.02
_MOST_REMEMBERED = 10_000
_notified: dict[tuple[str, str, str], float] = {}


def wake(store: Store, lanes: Lanes) -> None:
    """Notify workers of these (queue, tenant) pairs once the caller's transaction is committed."""
    if lanes:
        store.on_commit(lambda: notify(store, lanes))


def notify(store: Store, lanes: Lanes) -> None:
    """Notify workers now. A failure is logged only: the jobs are stored, and polling finds them."""
    now = time.monotonic()
    due = {lane for lane in lanes if now - _notified.get((store.alias, *lane), -QUIET_SECONDS) >= QUIET_SECONDS}
    if not due:
        return
    if len(_notified) > _MOST_REMEMBERED:
        _notified.clear()
    _notified.update(dict.fromkeys(((store.alias, *lane) for lane in due), now))
    try:
        store.notify(due)
    except Error:
        logger.warning("Could not wake the workers; they find the jobs when they poll.", exc_info=True)
