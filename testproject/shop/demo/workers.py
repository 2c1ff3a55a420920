"""Real worker processes: started, killed and stopped, and never left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from django.conf import settings

from django_workqueue.models import Job, Worker

from .waiting import DemoError, wait_for

START_SECONDS = 30
KILL_SECONDS = 20
STOP_SECONDS = 15
#: How long a worker may take to put its work back when the demo ends early.
LAST_CALL_SECONDS = 5
TAIL_LINES = 15


class WorkerProcess:
    """One ``manage.py runworkers`` under a name of its own, for as long as the context lasts."""

    def __init__(self, name: str, log: Path, environment: Mapping[str, str], concurrency: int = 2) -> None:
        self.name = name
        self.log = log
        self._environment = {**os.environ, **environment}
        self._arguments = ["--name", name, "--concurrency", str(concurrency)]
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "runworkers", *self._arguments]
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                # Ctrl-C in the terminal must reach the demo alone, which then stops its workers in order.
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is not None:
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a frozen process hears nothing else
        try:
            self._process.wait(LAST_CALL_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:  # also when Ctrl-C is pressed again meanwhile
            self._kill()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def tail(self) -> str:
        """The last lines that the process printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def wait_until_ready(self) -> None:
        """Wait until the worker has announced itself in the database."""
        wait_for(self._is_ready, f"{self.name} to start", seconds=START_SECONDS)

    def require_alive(self) -> None:
        """Raise DemoError if the process has ended."""
        if (code := self._process.poll()) is not None:
            raise DemoError(f"{self.name} ended by itself with exit code {code}. It printed:\n{self.tail}")

    def held_jobs(self) -> set[str]:
        """Return the ids of the jobs that the worker holds under a lease now."""
        workers = Worker.objects.filter(name=self.name).values("pk")
        ids = Job.objects.leased().filter(lease__worker__in=workers).values_list("pk", flat=True)
        return {str(pk) for pk in ids}

    def kill_in_mid_work(self, give_work: Callable[[], object]) -> set[str]:
        """
        Send SIGKILL while the worker holds work, and return the ids of the jobs that it held.

        ``give_work`` is called whenever the worker is found idle.
        """

        def strike() -> set[str]:
            held = self._freeze_with_work()
            if not held:
                give_work()
            return held

        held = wait_for(strike, f"{self.name} to be in the middle of a job", seconds=KILL_SECONDS)
        self._kill()
        return held

    def stop(self) -> None:
        """Ask for an orderly end with SIGTERM. Raises DemoError unless the exit code is 0."""
        self._process.terminate()
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemoError(f"{self.name} did not stop within {STOP_SECONDS} seconds of SIGTERM.") from None
        if code:
            raise DemoError(f"{self.name} ended with exit code {code}. It printed:\n{self.tail}")

    def _is_ready(self) -> bool:
        self.require_alive()
        return Worker.objects.filter(name=self.name).exists()

    def _freeze_with_work(self) -> set[str]:
        """Freeze the worker and return what it holds; nothing held lets it go on."""
        self.require_alive()
        self._signal(signal.SIGSTOP)
        # A statement that was on its way when the worker froze still arrives, and may end a job. What is held
        # before and after that is held for good.
        before = self.held_jobs()
        time.sleep(0.05)
        held = before & self.held_jobs()
        if not held:
            self._signal(signal.SIGCONT)
        return held

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        # The worker leads a group of its own: whatever it may have started goes with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
