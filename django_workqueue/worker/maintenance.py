"""Maintenance: what every worker does for the whole queue, besides running jobs. It needs no leader, job or slot."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from ..conf import get_settings
from ..lifecycle import operate
from ..lifecycle.limits import Sweep
from ..lifecycle.reap import lanes_of, reap, rescue
from ..lifecycle.wake import notify
from ..store import Store
from .lanes import News
from .shutdown import StopRequest
from .tally import Tally
from .thread import WorkerThread, log_failure
from .timekeeper import Timekeeper

logger = logging.getLogger("django_workqueue.worker")

FLUSH_SECONDS = 5.0
PROMOTE_SECONDS = 1.0
"""Longest time between two looks at what is due: a job enqueued with a shorter delay may be as much late."""
LOCKED_SECONDS = 0.25
SWEEP_SECONDS = 60.0
WITHHELD_SECONDS = 5.0
"""Time between two looks for blocked and parked jobs while there are none."""
PRUNE_BATCH = 1000


@dataclass(slots=True)
class Chore:
    """Something to do again and again. ``run`` returns the seconds until the next time."""

    name: str
    run: Callable[[], float]
    due: float = 0.0


class Maintenance(WorkerThread):
    """Promotes due jobs, reaps, writes rollups and prunes, each in its own rhythm."""

    def __init__(
        self,
        *,
        store: Store,
        tally: Tally,
        news: News,
        wake: Callable[[], None],
        poll_seconds: float,
        ended: StopRequest,
        on_crash: Callable[[], None],
    ) -> None:
        super().__init__("maintenance", on_crash)
        self._store = store
        self._tally = tally
        self._news = news
        self._wake = wake
        self._poll_seconds = poll_seconds
        self._ended = ended
        self._timekeeper = Timekeeper(store)
        self._sweep = Sweep()
        self._reaping = Chore("reap lapsed leases", self._reap)
        self._letting_go = Chore("let withheld jobs go", self._let_go)
        self._chores: Sequence[Chore] = (
            Chore("promote due jobs", self._promote),
            Chore("fire schedules", self._fire),
            self._reaping,
            self._letting_go,
            Chore("write statistics", self._flush),
            Chore("rescue orphans", self._rescue),
            Chore("prune", self._prune),
        )

    def work(self) -> None:
        """Do each chore when it is due; one that fails is logged and tried again, and does not stop the others."""
        while not self._ended.requested:
            for chore in self._chores:
                if time.monotonic() >= chore.due and not self._ended.requested:
                    self._do(chore)
            self._ended.wait(max(0.0, min(chore.due for chore in self._chores) - time.monotonic()))
        self._flush_at_end()

    def _do(self, chore: Chore) -> None:
        try:
            self._store.prepare()
            wait = chore.run()
        except Exception as error:  # noqa: BLE001 - logged, and must not stop the other chores
            wait = min(self._poll_seconds, 1.0)
            log_failure(logger, error, f"Could not {chore.name}", wait)
            self._store.connection.close()
        chore.due = time.monotonic() + wait

    def _promote(self) -> float:
        due = self._look()
        if due is None or due > timedelta():
            return PROMOTE_SECONDS if due is None else min(due.total_seconds(), PROMOTE_SECONDS)
        if lanes := self._store.promote():
            # Their due times may lie before the marks of this worker's own lanes.
            self._news.returned.extend(lanes)
            self._wake()
            notify(self._store, lanes)
            return 0.0
        # Due, but in somebody's hands: another worker's for an instant, or a person's for an hour.
        return LOCKED_SECONDS

    def _look(self) -> timedelta | None:
        """
        Return how long until the next job is due.

        Where other chores come next, one statement looks for all of them, and they are put off when there is nothing to
        do: an idle worker asks as little as it can.
        """
        now = time.monotonic()
        if min(self._reaping.due, self._letting_go.due) - now >= PROMOTE_SECONDS:
            return self._store.next_due()
        due, lapsed, withheld = self._store.outlook()
        if not lapsed:
            self._reaping.due = now + get_settings().reap_interval.total_seconds()
        if not withheld:
            self._letting_go.due = now + WITHHELD_SECONDS
        return due

    def _fire(self) -> float:
        lanes, wait = self._timekeeper.look()
        if lanes:
            self._news.returned.extend(lanes)
            self._wake()
        return wait

    def _reap(self) -> float:
        reclaimed = reap(self._store)
        if reclaimed:
            self._news.returned.extend(lanes_of(reclaimed))
            self._wake()
            return 0.0
        return get_settings().reap_interval.total_seconds()

    def _let_go(self) -> float:
        """Mend what was missed of blocked and parked jobs. One cheap look, and a seldom one, where there are none."""
        if not self._store.has_withheld():
            return WITHHELD_SECONDS
        if lanes := self._sweep.run(self._store):
            self._news.returned.extend(lanes)
            self._wake()
        return PROMOTE_SECONDS

    def _rescue(self) -> float:
        rescued = rescue(self._store)
        if rescued:
            logger.warning("Gave back %d leased jobs whose lease was gone.", len(rescued))
            return 0.0
        return SWEEP_SECONDS

    def _flush(self) -> float:
        counts = self._tally.take_counts()
        if counts:
            try:
                self._store.add_counts(counts)
            except Exception:
                self._tally.give_back(counts)
                raise
        minutes = self._tally.minutes()
        if minutes:
            self._store.write_minutes(minutes)
            self._tally.written(minutes)
        return FLUSH_SECONDS

    def _prune(self) -> float:
        return (
            0.1 if operate.prune(batch=PRUNE_BATCH, database=self._store.alias).total >= PRUNE_BATCH else SWEEP_SECONDS
        )

    def _flush_at_end(self) -> None:
        try:
            self._store.prepare()
            self._flush()
        except Exception:
            logger.warning("The last statistics could not be written.", exc_info=True)
