"""Being told to stop: by a signal, by an end condition, by a crash, or in order to start over."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger("django_workqueue.worker")

LEAVE_SECONDS = 5.0
"""How long a worker that was told twice may still take to give its jobs back."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """
    Whether, and how urgently, the worker is to stop.

    The first request lets running jobs end within the grace time, the second ends at once.
    """

    recycling = ""
    """Why the process is to start over once it has stopped; empty when it is to end."""

    def __init__(self, *, leave_seconds: float = LEAVE_SECONDS) -> None:
        self._leave_seconds = leave_seconds
        self.wake: Callable[[], None] = lambda: None
        self._event = threading.Event()
        self._now = threading.Event()
        self._finished = threading.Event()
        self._asked = False
        self.crashed = False

    @property
    def requested(self) -> bool:
        """Whether the worker is to stop."""
        return self._event.is_set()

    @property
    def now(self) -> bool:
        """Whether running jobs are not to be waited for any more."""
        return self._now.is_set()

    def request(self) -> None:
        """Ask once more for a stop."""
        if self._asked:
            self._now.set()
        self._asked = True
        # Whoever asks for an end, be it while the process is about to start over, wants no other beginning.
        self.recycling = ""
        self._event.set()
        self.wake()

    def drain(self) -> None:
        """Stop as at a first request, unless that is under way. It never counts as a second request."""
        self.recycling = ""
        self._event.set()
        self.wake()

    def insist(self) -> None:
        """Stop as at a second request."""
        self._asked = True
        self.request()
        threading.Thread(target=self._leave_by_force, name="workqueue-leave", daemon=True).start()

    def recycle(self, reason: str) -> None:
        """Stop as at a first request, and start over then. It never counts as a second request."""
        if not self.requested:
            self.recycling = reason
            self._event.set()
            self.wake()

    def crash(self) -> None:
        """Stop at once, and say by the exit code that it was not in order."""
        self.crashed = True
        self._now.set()
        self._event.set()
        self.wake()

    def wait(self, seconds: float) -> bool:
        """Wait for a request, and return whether there is one."""
        return self._event.wait(seconds)

    def wait_for_now(self, seconds: float) -> bool:
        """Wait for the second request, and return whether there is one."""
        return self._now.wait(seconds)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Turn SIGTERM and SIGINT into requests for the block. Explicit, as process 1 has no handlers by default."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # A handler runs in the middle of whatever the main thread does, maybe while it holds the very lock that a
        # request takes. So the handlers do nothing, and a thread reads the signals from a pipe.
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        previous_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        previous = {number: signal.signal(number, lambda _number, _frame: None) for number in SIGNALS}
        watch = threading.Thread(target=self._watch, args=(reader,), name="workqueue-signals", daemon=True)
        watch.start()
        # A process that started over was deaf to them up to here; what came meanwhile is heard now.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            yield
        finally:
            self._finished.set()
            for number, handler in previous.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(previous_fd)
            writer.close()
            watch.join()

    def _watch(self, reader: socket.socket) -> None:
        with reader:
            while received := reader.recv(16):
                for number in received:
                    if number in SIGNALS:
                        self.request()
                if self.now:
                    self._leave_by_force()

    def _leave_by_force(self) -> None:
        if not self._finished.wait(self._leave_seconds):
            # The database does not answer, and whoever asked twice does not want to wait for it.
            os._exit(1)


def start_over() -> None:
    """
    Replace this process by a fresh one of the same command, which keeps its id. Returns only if that cannot be done.

    Every other thread ends here and now, whatever it is doing. Signals to stop are put off until the new process has
    its handlers: as process 1 it has none by default, and they would be lost.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the very command that runs here
    except OSError:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        logger.exception("The worker could not start over; it ends.")


def leave(code: int, *, busy: bool, over: bool = False) -> None:
    """
    End the process with ``code``, or, with ``over``, let it start over first.

    Threads of jobs that were given back may still run; the interpreter would wait for some of them for ever.
    """
    if over:
        start_over()
    if not busy:
        sys.exit(code)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
