"""One worker process from its first connection to its last."""

from __future__ import annotations

import logging
import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import django
from django.db import DatabaseError

from .. import __version__
from ..models import Worker
from ..models.worker import WorkerState
from ..store import Store, store_for
from ..store.watch import Beat
from .arrival import missing_migration, wait_for_database, warn_of_connections
from .dispatcher import Dispatcher
from .executors import EventLoop, Executor
from .guard import Guard
from .health import LIVE_SECONDS, Health
from .heartbeat import Heartbeat
from .link import Link, LinkThread, Report
from .listener import Listener
from .maintenance import Maintenance
from .naming import Name, NameTakenError, forget, origin_of
from .options import WorkerOptions
from .requests import Requests
from .shutdown import StopRequest
from .supervision import Supervision
from .tally import Tally, memory_bytes
from .thread import WorkerThread
from .vital import VitalSigns
from .wear import Wear

logger = logging.getLogger("django_workqueue.worker")

EXIT_CLEAN, EXIT_CRASHED, EXIT_USAGE, EXIT_MIGRATIONS = 0, 1, 2, 3
EXIT_RECYCLE = 4
"""The process is to be started again: it stopped in good order, but for threads that only its end can end."""
_JOIN_SECONDS = 5.0
# A thread that computes holds the interpreter for this long while the dispatcher, back from the database, waits for it.
# With Python's 5 ms a third of the throughput of short jobs was lost, measured.
SWITCH_SECONDS = 0.001


class WorkerProcess:
    """Starts the threads, dispatches in the calling one until it is told to stop, and puts everything away."""

    def __init__(
        self, options: WorkerOptions, *, say: Callable[[str], None] = lambda _line: None, link: Link | None = None
    ) -> None:
        if link is not None:
            options = options.of_process(link.welcome.number)
        self._options = options
        self._say = say
        self._link = link
        self._host = socket.gethostname()
        # Fresh at every start: two containers may share host name and pid, and must not pass for one worker.
        name = options.name or f"{self._host}:{os.getpid()}"
        self.id = f"{name[:100]}:{uuid4().hex[:12]}"
        self.stop = StopRequest()
        self._ended, self._heart_ended = StopRequest(), StopRequest()
        self._store = self._new_store()
        self._tally = Tally(self.id)
        self._dispatcher = Dispatcher(options, self._store, self.id, self.stop, self._tally)
        self.stop.wake = self._dispatcher.wake
        self._requests = Requests(self.id, self._dispatcher, self.stop)
        self._supervision = Supervision(self._dispatcher.board, self.stop.recycle, self.stop.crash)
        self._heart_ended.wake = self._supervision.errands.wake
        self._executors: list[WorkerThread] = []
        self._serving = False
        self._worn = ""
        self._wear = Wear.of(options, supervised=link is not None)
        self._tell: Callable[[], None] = lambda: None
        self._signs = VitalSigns(options, self.health, self.stop.crash)

    def run(self) -> int:
        """
        Work until stopped and return the exit code.

        0 in good order, 1 after a crash, 3 without our migrations, 4 when the process is to start over.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        with self.stop.on_signals(), self._showing_signs() as trouble:
            if trouble:
                self._say(trouble)
                return EXIT_USAGE
            self._start_link()
            if (code := self._come_up()) is not None:
                return code
            self._start()
            self._say(self._greeting())
            self._serving = True
            self._tell()
            self._signs.say("READY=1")
            self._dispatcher.run(self._look_at_wear if self._wear else None)
            self._finish()
        return self._outcome()

    @property
    def is_busy(self) -> bool:
        """Whether threads of abandoned jobs still run, which would keep the interpreter from ending in good order."""
        return any(thread.is_alive() for thread in self._executors)

    # -- start ---------------------------------------------------------------------------------------------------

    def _come_up(self) -> int | None:
        """Connect and register; return the exit code when it ends here."""
        if not wait_for_database(self._store, self.stop, self._dispatcher.pulse.beat):
            return EXIT_CLEAN
        if missing := missing_migration(self._store):
            self._say(
                f"The database {self._options.database!r} lacks migrations of django_workqueue ({missing}). "
                "Run 'manage.py migrate' first."
            )
            return EXIT_MIGRATIONS
        # Once for all processes.
        if self._link is None or self._link.welcome.number == 1:
            warn_of_connections(self._store, self._options)
        try:
            return None if self._register() else EXIT_CLEAN
        except NameTakenError as error:
            self._say(str(error))
            return EXIT_USAGE

    def _new_store(self) -> Store:
        # Who does not listen may be behind a transaction pooler, which is why one would not.
        return store_for(self._options.database, pooled=not self._options.listen)

    def _register(self) -> bool:
        """Store the worker's row, under its name where it was given one. False when told to stop meanwhile."""
        if self._options.name:
            siblings = [] if self._link is None else self._link.welcome.siblings
            beat = self._dispatcher.pulse.beat
            return Name(self._store, self.stop, self._say, siblings=siblings, beat=beat).take(self._row)
        return self._store.register_worker(self._row())

    def _row(self) -> Worker:
        options = self._options
        return Worker(
            id=self.id,
            name=options.name or self.id,
            host=self._host,
            pid=os.getpid(),
            origin=origin_of("self"),
            queues=options.patterns,
            slots=options.concurrency,
            request=self._requests.latest,
            versions=f"django_workqueue {__version__}, Django {django.__version__}, Python {platform.python_version()}",
        )

    def _start(self) -> None:
        crash = self.stop.crash
        self._loop = EventLoop(crash)
        self._executors = [self._new_executor(number) for number in range(self._options.concurrency)]
        news, wake = self._dispatcher.lanes.news, self._dispatcher.wake
        self._heart = Heartbeat(
            store=self._new_store(),
            row=self._row,
            held=self._dispatcher.held,
            report=self._report,
            heed=self._requests.heed,
            errands=self._supervision.errands,
            cancels=self._supervision.cancels,
            longest_run=self._dispatcher.board.longest_run,
            ended=self._heart_ended,
            on_crash=crash,
        )
        self._helpers: list[WorkerThread] = [
            Maintenance(
                store=self._new_store(),
                tally=self._tally,
                news=news,
                wake=wake,
                poll_seconds=self._options.poll_interval.total_seconds(),
                ended=self._ended,
                on_crash=crash,
            ),
        ]
        if self._options.watchdog is not None:
            pulse, patience = self._dispatcher.pulse, self._options.watchdog
            self._helpers.append(Guard(self._new_store(), pulse, patience=patience, ended=self._ended, on_crash=crash))
        if self._listens:
            listener = Listener(
                self._new_store(),
                news=news,
                wake=wake,
                cancel_call=self._heart.hear_cancel_call,
                ended=self._ended,
                on_crash=crash,
            )
            self._helpers.append(listener)
        for thread in (self._heart, *self._helpers, self._loop, *self._executors):
            thread.start()

    def _new_executor(self, number: int) -> Executor:
        return Executor(
            number,
            board=self._dispatcher.board,
            loop=self._loop,
            store=self._new_store(),
            worker=self.id,
            supervision=self._supervision,
            on_crash=self.stop.crash,
        )

    @property
    def _listens(self) -> bool:
        return self._options.listen and self._store.can_listen()

    def _report(self) -> Beat:
        return Beat(
            state=self._dispatcher.standing,
            memory_bytes=memory_bytes(),
            running=self._dispatcher.board.running,
            done=self._tally.done,
            failed=self._tally.failed,
        )

    def _greeting(self) -> str:
        options, poll = self._options, self._options.poll_interval.total_seconds()
        hears = "listens and polls" if self._listens else "polls"
        return (
            f"Worker {self.id} serves queues {options.patterns} with {options.concurrency} slots "
            f"on {self._store.connection.vendor} database {options.database!r}; {hears} every {poll:g} s."
            + ("" if self._link else " Stop with Ctrl-C.")
        )

    # -- health --------------------------------------------------------------------------------------------------

    @contextmanager
    def _showing_signs(self) -> Iterator[str]:
        """Show vital signs for the block, where a supervisor does not do it; tell what cannot be shown."""
        if self._link is not None:
            yield ""
            return
        trouble = self._signs.start()
        pulse = self._dispatcher.pulse
        pulse.on_beat = self._show if self._signs.wanted else None
        pulse.longest_sleep = min(pulse.longest_sleep, self._signs.longest_silence)
        try:
            yield trouble
        finally:
            self._signs.close()

    def _show(self) -> None:
        self._signs.beat()
        if self.stop.requested:
            self._signs.say("STOPPING=1")

    def health(self) -> Health:
        """Return how the worker is, from what is known."""
        pulse = self._dispatcher.pulse
        standing = self._dispatcher.standing
        live = not self.stop.crashed and pulse.age < LIVE_SECONDS
        return Health(
            live=live,
            ready=live and self._serving and standing is not WorkerState.STOPPING and pulse.reachable,
            facts={
                "worker": self.id,
                "state": standing.value if self._serving or standing is WorkerState.STOPPING else "starting",
                "database": pulse.reachable,
                "round_seconds_ago": round(pulse.age, 1),
                "running": self._dispatcher.board.running,
                "slots": self._options.concurrency,
            },
        )

    # -- being replaced ------------------------------------------------------------------------------------------

    def _start_link(self) -> None:
        """Report to the supervisor, where there is one, and hear its orders."""
        if self._link is not None:
            orders = {"retire": self._dispatcher.retire, "stop": self.stop.drain, "now": self.stop.insist}
            thread = LinkThread(self._link, self._state, orders, self.stop.crash)
            self._tell = self._requests.tell = thread.tell
            thread.start()

    def _state(self) -> Report:
        """Return what a supervisor is told."""
        pulse = self._dispatcher.pulse
        return Report(
            worker=self.id,
            ready=self._serving,
            stopping=self.stop.requested,
            dismissed=self._requests.is_dismissed,
            worn=self._worn or self.stop.recycling,
            age=pulse.age,
            reachable=pulse.reachable,
        )

    def _look_at_wear(self) -> None:
        """Once worn, retire: at once without a supervisor, at its order, when the successor serves, with one."""
        if self._worn or self._wear is None:
            return
        self._worn = self._wear.reason(self._dispatcher.claimed, self._tally.done + self._tally.failed)
        if self._worn:
            logger.info("Worker %s is to be replaced: %s.", self.id, self._worn)
            self._tell()
            if self._link is None:
                self._dispatcher.retire()

    # -- end -----------------------------------------------------------------------------------------------------

    def _outcome(self) -> int:
        if self.stop.crashed:
            self._say(f"Worker {self.id} stopped after a crash; see the log.")
            return EXIT_CRASHED
        if self.stop.recycling:
            self._say(f"Worker {self.id} starts over: {self.stop.recycling}")
            return EXIT_RECYCLE
        why = f" because {self._worn}" if self._worn else ""
        counts = f"{self._tally.done} jobs done, {self._tally.failed} attempts failed"
        self._say(f"Worker {self.id} stopped{why}: {counts}.")
        return EXIT_RECYCLE if self._worn and self._link is not None else EXIT_CLEAN

    def _finish(self) -> None:
        self._supervision.watchdog.end()
        self._loop.stop()
        self._ended.request()
        until = time.monotonic() + _JOIN_SECONDS
        for helper in self._helpers:
            helper.join(max(0.0, until - time.monotonic()))
        for executor in self._executors:
            executor.join(0.0 if self.stop.now else 0.2)
        # The heart goes on for as long as leases are to be kept, and ends before its row goes.
        self._heart_ended.request()
        self._heart.join(_JOIN_SECONDS)
        try:
            self._store.prepare()
            self._store.retire_worker(self.id)
        except DatabaseError:
            logger.warning("The worker's row could not be removed; it goes after a day.", exc_info=True)
        self._dispatcher.settle_abandoned()
        self._store.connection.close()
        forget(self.id)
