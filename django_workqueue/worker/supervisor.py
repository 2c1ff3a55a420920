"""The supervisor: keeps several worker processes running, replaces them and stops them together."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from .child import Child
from .health import LIVE_SECONDS, Health
from .link import Welcome
from .options import WorkerOptions
from .process import EXIT_CLEAN, EXIT_CRASHED, EXIT_MIGRATIONS, EXIT_RECYCLE, EXIT_USAGE
from .shutdown import LEAVE_SECONDS, StopRequest
from .vital import VitalSigns

logger = logging.getLogger("django_workqueue.worker")

LOOK_SECONDS = 0.5
"""Longest time until the end of a process is noticed; mostly the end of its link tells at once."""
ENDING_SECONDS = 0.02
"""Time between two looks at a process whose link has ended."""
QUICK_SECONDS = 10.0
"""A process that has served for less is started again only after a pause, which doubles each time."""
LONGEST_PAUSE = 30.0
MOST_FAILED_STARTS = 5
"""Starts that fail in a row before the supervisor gives up."""
LATE_SECONDS = 20.0
"""How much longer than its shutdown timeout a process may take to end before it is killed."""
_HOPELESS = {EXIT_USAGE: "its options or settings cannot work", EXIT_MIGRATIONS: "migrations are missing"}


class Slot:
    """The place of one process: who serves in it, and who is about to."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.serving: Child | None = None
        self.successor: Child | None = None
        self.quick_deaths = 0
        self.start_at = 0.0
        self.finished = False

    def died(self, *, quickly: bool) -> None:
        """Note a crash: the next start is at once, but after the second quick death in a row there is a pause."""
        self.quick_deaths = self.quick_deaths + 1 if quickly else 0
        pause = min(0.5 * 2.0 ** min(self.quick_deaths - 2, 10), LONGEST_PAUSE) if self.quick_deaths > 1 else 0.0
        self.start_at = time.monotonic() + pause


class Supervisor:
    """
    One thread that starts processes, hears their reports and waits for their ends.

    It opens no connection to the database, and its processes inherit nothing but their link: each is a fresh
    interpreter that runs the same command.
    """

    is_busy = False

    def __init__(
        self,
        options: WorkerOptions,
        *,
        say: Callable[[str], None] = lambda _line: None,
        command: Sequence[str] | None = None,
    ) -> None:
        self._options = options
        self._say = say
        self._command = [sys.executable, *sys.orig_argv[1:]] if command is None else list(command)
        self._slots = [Slot(number) for number in range(1, (options.processes or 1) + 1)]
        self._children: list[Child] = []
        # The processes force themselves out first.
        self.stop = StopRequest(leave_seconds=LEAVE_SECONDS * 2)
        self._selector = selectors.DefaultSelector()
        self._failed_starts = 0
        self._code = EXIT_CLEAN
        self._ordered = ""
        self._kill_at = float("inf")
        self._turned_at = time.monotonic()
        self._signs = VitalSigns(options, self.health, self.stop.drain)

    def run(self) -> int:
        """Keep the processes running until told to stop; return 0 when all ended in good order."""
        if trouble := self._signs.start():
            self._say(trouble)
            return EXIT_USAGE
        with self.stop.on_signals(), self._waking(), contextlib.closing(self._signs):
            self._say(
                f"Supervisor {os.getpid()} keeps {len(self._slots)} processes with {self._options.concurrency} slots "
                "each. Stop with Ctrl-C."
            )
            while self._children or not (self.stop.requested or all(slot.finished for slot in self._slots)):
                self._turn()
        self._say(f"Supervisor {os.getpid()} stopped.")
        return self._code

    @contextlib.contextmanager
    def _waking(self) -> Iterator[None]:
        """Let a request to stop end the wait for reports."""
        reader, writer = socket.socketpair()
        with self._selector, reader, writer:
            for end in (reader, writer):
                end.setblocking(False)
            self._selector.register(reader, selectors.EVENT_READ, lambda: reader.recv(64))
            self.stop.wake = lambda: _poke(writer)
            yield
            self.stop.wake = lambda: None

    def _turn(self) -> None:
        self._order()
        if not self.stop.requested:
            for slot in self._slots:
                self._fill(slot)
        for key, _ in self._selector.select(self._seconds_to_wait()):
            key.data()
        self._reap()
        self._kill_late()
        self._show()

    def _seconds_to_wait(self) -> float:
        """Return the time until something is to be done, at most; what comes over a link ends the wait anyway."""
        if any(child.is_silent for child in self._children):
            return ENDING_SECONDS
        if self.stop.requested:
            return LOOK_SECONDS
        starts = [slot.start_at - time.monotonic() for slot in self._slots if not (slot.serving or slot.finished)]
        return max(0.0, min(LOOK_SECONDS, *starts)) if starts else LOOK_SECONDS

    # -- starting and replacing ----------------------------------------------------------------------------------

    def _fill(self, slot: Slot) -> None:
        """See to it that a process serves in the slot, or is about to."""
        if slot.finished:
            return
        old, new = slot.serving, slot.successor
        if new is not None and (new.report.ready or old is None):
            slot.serving, slot.successor = new, None
            if old is not None:
                old.order("retire")
            return
        is_due = new is None and time.monotonic() >= slot.start_at
        if old is None and is_due:
            slot.serving = self._start(slot)
        elif old is not None and old.report.worn and is_due:
            logger.info("Process %d is replaced: %s.", old.pid, old.report.worn)
            slot.successor = self._start(slot, siblings=[old.report.worker])

    def _start(self, slot: Slot, siblings: Sequence[str] = ()) -> Child:
        child = Child(self._command, Welcome(number=slot.number, siblings=list(siblings)))
        self._children.append(child)
        self._selector.register(child.wire, selectors.EVENT_READ, lambda: self._hear(child))
        return child

    def _hear(self, child: Child) -> None:
        child.hear()
        if child.is_silent:
            self._selector.unregister(child.wire)

    # -- ends ----------------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        if os.getpid() == 1:
            _collect_orphans({child.pid for child in self._children})
        for child in list(self._children):
            if (code := child.poll()) is not None:
                self._children.remove(child)
                self._selector_forget(child)
                self._ended(child, code)

    def _selector_forget(self, child: Child) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(child.wire)
        child.close()

    def _ended(self, child: Child, code: int) -> None:
        """Judge the end of a process."""
        in_order = code in {EXIT_CLEAN, EXIT_RECYCLE}
        if self.stop.requested and not in_order:
            self._code = self._code or EXIT_CRASHED
        slot = next((slot for slot in self._slots if child in (slot.serving, slot.successor)), None)
        if not in_order:
            logger.warning("Process %d ended with exit code %d.", child.pid, code)
        if slot is None or self.stop.requested:
            return
        if slot.successor is child:
            slot.successor = None
        else:
            slot.serving = None
        if in_order:
            slot.finished = code == EXIT_CLEAN and (self._options.burst or self._is_dismissed(slot, child))
        elif code in _HOPELESS:
            self._give_up(code, f"Process {child.pid} cannot run: {_HOPELESS[code]}.")
        else:
            self._died(slot, child, code)

    @staticmethod
    def _is_dismissed(slot: Slot, child: Child) -> bool:
        """Whether a person has stopped the process: the slot stays empty, unless another is about to serve in it."""
        return child.report.dismissed and slot.successor is None

    def _died(self, slot: Slot, child: Child, code: int) -> None:
        """
        Note that a process crashed.

        A kill of one that served already may be a job's doing, and it is the job that pays; only starts that come to
        nothing make the supervisor give up.
        """
        served = child.served_seconds
        quickly = served is None or served < QUICK_SECONDS
        slot.died(quickly=quickly)
        if served is None or (quickly and code == EXIT_CRASHED):
            self._failed_starts += 1
        if any((each.served_seconds or 0) >= QUICK_SECONDS for each in (child, *self._children)):
            self._failed_starts = 0
        if self._failed_starts >= MOST_FAILED_STARTS:
            self._give_up(
                EXIT_CRASHED, f"{self._failed_starts} starts in a row failed, the last with exit code {code}."
            )

    def _give_up(self, code: int, why: str) -> None:
        self._code = code
        self._say(f"{why} The supervisor stops; see the log.")
        self.stop.drain()

    # -- stopping ------------------------------------------------------------------------------------------------

    def _order(self) -> None:
        """Pass a request to stop on, once each; a process hears it but once however many signals it gets itself."""
        order = "now" if self.stop.now else "stop" if self.stop.requested else ""
        if order == self._ordered:
            return
        self._ordered = order
        grace = 0.0 if order == "now" else self._options.shutdown_timeout.total_seconds()
        self._kill_at = time.monotonic() + grace + LATE_SECONDS
        for child in self._children:
            child.order(order)

    def _kill_late(self) -> None:
        """Kill what does not end in time, and, with --watchdog, what does not even report any more."""
        watchdog = self._options.watchdog
        patience = float("inf") if watchdog is None else watchdog.total_seconds()
        for child in self._children:
            if time.monotonic() >= self._kill_at or child.silence > patience:
                logger.error("Process %d does not end or does not answer; it is killed.", child.pid)
                child.kill()

    # -- health --------------------------------------------------------------------------------------------------

    def health(self) -> Health:
        """Return how all processes are together, from their last reports."""
        serving = [slot.serving for slot in self._slots if not slot.finished]
        live = time.monotonic() - self._turned_at < LIVE_SECONDS and all(child.is_live for child in self._children)
        stopping = self.stop.requested
        ready = all(child is not None and child.report.ready and child.report.reachable for child in serving)
        return Health(
            live=live,
            ready=live and ready and not stopping,
            facts={
                "supervisor": os.getpid(),
                "state": "stopping" if stopping else "running",
                "processes": [child.facts for child in serving if child is not None],
            },
        )

    def _show(self) -> None:
        """Show vital signs, for as long as all processes have them."""
        self._turned_at = time.monotonic()
        health = self.health()
        if health.live:
            self._signs.beat()
        if self.stop.requested:
            self._signs.say("STOPPING=1")
        elif health.ready:
            self._signs.say("READY=1")


def _poke(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.send(b"!")


def _collect_orphans(own: set[int]) -> None:
    """As process 1, wait for the processes that jobs left behind: nobody else does, and the table is finite."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if ended.si_pid in own:
                return
            os.waitpid(ended.si_pid, 0)
