"""The dispatcher: claim, hand out, collect and settle, in one thread and on one connection."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable

from django.db import Error

from ..domain.outcomes import ClaimedJob
from ..lifecycle import claim as claiming
from ..lifecycle import limits
from ..lifecycle import settle as settling
from ..models.worker import WorkerState
from ..store import Store
from .board import Board
from .held import HeldLeases
from .lanes import LaneBook
from .options import WorkerOptions
from .pace import Pace
from .pulse import Pulse
from .settler import Settler
from .shutdown import StopRequest
from .tally import Tally
from .thread import Backoff, log_failure

logger = logging.getLogger("django_workqueue.worker")

FLUSH_SECONDS = 0.01
"""How long an outcome may wait for others to be settled with."""
HEARING_FACTOR = 5
"""How much longer than the poll interval an idle worker waits while its listener hears."""
STALE_SECONDS = 1.0
"""How long a claimed job may wait for a slot before it is given back."""
GIVE_BACK_SECONDS = 5.0
"""How long a worker that leaves tries to give its running jobs back when the database is away."""
# A connection that broke may have left a claim that commits only now: the search for unknown leases is repeated.
_SEARCH_AGAIN_SECONDS = 5.0


class Dispatcher:
    """Everything that the worker writes about jobs goes through here, so that one thread owns the order of it."""

    def __init__(self, options: WorkerOptions, store: Store, worker: str, stop: StopRequest, tally: Tally) -> None:
        self.pulse = Pulse()
        self.retired = False
        self._quiet = False
        self.claimed = 0
        self.held = HeldLeases()
        self.lanes = LaneBook(options)
        self.board = Board(options.concurrency, may_start=self.held.may_start, wake=self.wake)
        self._options = options
        self._store = store
        self._worker = worker
        self._stop = stop
        self._pace = Pace(options.concurrency)
        self._settler = Settler(
            store,
            worker,
            held=self.held,
            board=self.board,
            pace=self._pace,
            tally=tally,
            on_started=self.lanes.news.lanes.extend,
        )
        self._backoff = Backoff()
        self._woken = threading.Event()
        # Off the board and not given back yet, for as long as the database is away.
        self._returning: dict[int, list[ClaimedJob]] = defaultdict(list)
        self._walk_at = 0.0
        self._idle_walks = 0
        self._search_at: list[float] = []

    def wake(self) -> None:
        """Make the dispatcher look again, from any thread."""
        if not self._woken.is_set():
            self._woken.set()

    def retire(self) -> None:
        """Claim nothing more, and end when the last job has ended. From any thread; a stop can be requested still."""
        self.retired = True
        self.wake()

    @property
    def quiet(self) -> bool:
        """Whether it claims nothing until it is told otherwise. From any thread."""
        return self._quiet

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        self._quiet = quiet
        self.wake()

    @property
    def standing(self) -> WorkerState:
        """What the worker is doing, in one word."""
        if self._stop.requested or self.retired:
            return WorkerState.STOPPING
        return WorkerState.QUIET if self._quiet else WorkerState.RUNNING

    def run(self, on_round: Callable[[], None] | None = None) -> None:
        """Work until a stop is requested, then drain. ``on_round`` is called after each round before that."""
        while not self._stop.requested:
            self._guarded(self._round)
            if on_round is not None:
                on_round()
            if self._is_done():
                self._stop.request()
                break
            self._wait()
        self._drain()

    # -- one round -----------------------------------------------------------------------------------------------

    def _round(self) -> None:
        self._connect()
        self._settle()
        self._release(STALE_SECONDS)
        self.lanes.read_news()
        self._walk_if_due()
        self._claim()

    def _settle(self) -> None:
        """Write the outcomes that are there, and let go what waited for the slots that they free."""
        if self.lanes.holds_back and (self.board.unsettled or len(self._settler)):
            self.lanes.let_go()
        self._settler.settle()
        if freed := self._settler.take_freed():
            self.lanes.news.returned.extend(limits.admit(self._store, freed))

    def _guarded(self, step: Callable[[], None]) -> bool:
        """Run a step; whatever goes wrong is logged and backed off, and the next round begins anew."""
        self.pulse.beat()
        try:
            step()
        except Exception as error:  # noqa: BLE001 - logged, backed off and tried again
            self.pulse.reachable = False
            wait = self._backoff.failed()
            log_failure(logger, error, "A round of the worker failed", wait)
            self._after_error()
            pause = self._stop.wait_for_now if self._stop.requested else self._stop.wait
            pause(wait)
            return False
        self.pulse.reachable = True
        self._backoff.worked()
        return True

    def _after_error(self) -> None:
        """Distrust what was under way: outcomes may be settled already, and a claim may have been made."""
        self._settler.distrust()
        self.lanes.forget_marks()
        self._search_at = [0.0]
        try:
            self._store.connection.close()
        except Error:
            logger.debug("The broken connection could not be closed.", exc_info=True)

    def _connect(self) -> None:
        if self._store.prepare():
            now = time.monotonic()
            self._search_at = [now, now + _SEARCH_AGAIN_SECONDS]
        while self._search_at and self._search_at[0] <= time.monotonic():
            given_back = settling.release_unknown(self._store, self._worker, self.held.known())
            self._search_at.pop(0)
            if given_back:
                logger.warning("Gave back %d jobs of claims whose answer was lost.", len(given_back))

    def _walk_if_due(self) -> None:
        ends_soon = self._options.burst and not len(self.held) and not len(self.lanes)
        if ends_soon or self.lanes.news.missed or time.monotonic() >= self._walk_at:
            self.lanes.news.missed = False
            begun = time.monotonic()
            self.lanes.walk(self._store)
            took = time.monotonic() - begun
            self._idle_walks = 0 if len(self.lanes) else self._idle_walks + 1
            # At most a twentieth of the time goes into walks, and idle workers spread theirs.
            pause = self._poll_seconds() * random.uniform(0.8, 1)  # noqa: S311 - spreading, no secret
            self._walk_at = begun + max(pause, took * 20)

    def _poll_seconds(self) -> float:
        """Return the time between two walks: an idle worker that hears of new jobs looks more seldom."""
        seldom = self.lanes.news.hearing and self.lanes.is_empty
        return self._options.poll_interval.total_seconds() * (HEARING_FACTOR if seldom else 1)

    def _claim(self) -> None:
        self.board.call_in()
        if not self.lanes.is_empty:
            self.lanes.refresh_pauses(self._store)
        for size in self._pace.claims(free=self.board.free, waiting=self.board.waiting):
            if not self._claim_once(self._quota(size)):
                break

    def _claim_once(self, limit: int) -> bool:
        """Claim from the first queue that has something, and say whether any had."""
        if limit < 1:
            return False
        for queue, rotation in list(self.lanes.turns()):
            asked_at = time.monotonic()
            pauses = self.lanes.pauses
            jobs = claiming.claim(self._store, rotation, queue=queue, worker=self._worker, limit=limit, pauses=pauses)
            if rotation.hold:
                self.lanes.hold(queue, rotation.hold)
            if jobs:
                self.held.add(jobs, asked_at)
                self.claimed += len(jobs)
                self.board.put(jobs, executors=self._pace.executors(len(jobs)))
                self.lanes.served(queue)
                return True
        return False

    def _quota(self, size: int) -> int:
        """Return how many of ``size`` jobs may be claimed now."""
        return 0 if self._quiet else self._left(size)

    def _left(self, size: int) -> int:
        """Return how many of ``size`` jobs may still be claimed before it ends."""
        if self.retired:
            return 0
        if self._options.max_jobs is None:
            return size
        return max(0, min(size, self._options.max_jobs - self.claimed))

    def _is_done(self) -> bool:
        """Whether an end condition is met: no more may be claimed, or --burst with nothing left."""
        if len(self.held) or len(self._settler):
            return False
        if not self._left(1):
            return True
        return self._options.burst and not len(self.lanes) and not self.lanes.holds_back and self._idle_walks > 0

    def _wait(self) -> None:
        """Sleep until there is something to do."""
        self._woken.wait(min(self._seconds_to_wait(), self.pulse.longest_sleep))
        self._woken.clear()

    def _seconds_to_wait(self) -> float:
        if self.board.unsettled or self.board.waiting or len(self._settler):
            return FLUSH_SECONDS
        if self.board.free and len(self.lanes) and self._quota(1):
            return 0.0
        until_walk = max(0.0, self._walk_at - time.monotonic())
        next_look = self.lanes.next_look()
        return until_walk if next_look is None else min(until_walk, next_look)

    # -- giving back ---------------------------------------------------------------------------------------------

    def _release(self, older_than: float = 0.0) -> None:
        """Give back, their attempt not counted, the jobs that have waited for a slot for ``older_than`` seconds."""
        unstarted = self.board.unstarted(older_than)
        if unstarted:
            self._pace.misjudged()
        for job in unstarted:
            self._returning[job.lease_id].append(job)
        for lease_id, given in list(self._returning.items()):
            ids = [job.id for job in given]
            with self.held.closing(lease_id, ids) as last:
                settling.release(self._store, lease_id, ids, last=last)
                self.held.settled(lease_id, ids)
            del self._returning[lease_id]
            self.lanes.news.returned.extend({(job.queue, job.tenant) for job in given})
            self.claimed -= len(ids)

    def _drain(self) -> None:
        """Stop well: give back what has not started, let the rest end within the grace time, then give it back."""
        deadline = time.monotonic() + self._options.shutdown_timeout.total_seconds()
        self._guarded(self._give_back_unstarted)
        while not self._is_drained() and not self._stop.now and time.monotonic() < deadline:
            self._guarded(self._settle_connected)
            self._woken.wait(min(FLUSH_SECONDS * 5, max(0.0, deadline - time.monotonic())))
            self._woken.clear()
        self.board.close()
        until = time.monotonic() + GIVE_BACK_SECONDS
        while not self._guarded(self._give_back_running):
            if time.monotonic() >= until:
                break

    def _is_drained(self) -> bool:
        """Whether nothing is left that could still end."""
        return not len(self._settler) and all(job.id in self.board.abandoned for job in self.held.jobs())

    def settle_abandoned(self) -> None:
        """Record the jobs whose threads only the end of the process ends. The last thing that it does."""
        if len(self.held):
            self._guarded(self._record_abandoned)

    def _record_abandoned(self) -> None:
        self._connect()
        abandoned = self.board.abandoned
        self._settler.abandon(abandoned[job.id] for job in self.held.jobs() if job.id in abandoned)
        self._settle()

    def _give_back_unstarted(self) -> None:
        self._connect()
        self._release()

    def _settle_connected(self) -> None:
        self._connect()
        self._release()
        self._settle()

    def _give_back_running(self) -> None:
        """Record running jobs as interrupted, which counts no attempt; what their threads still do is refused."""
        self._connect()
        self._settle()
        self._settler.interrupt(job for job in self.held.jobs() if job.id not in self.board.abandoned)
        self._settle()
