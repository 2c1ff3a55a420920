"""Real worker processes: started, killed, frozen and stopped by their ids, and never left behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

Found = TypeVar("Found")

START_SECONDS = 40
LOOK_AGAIN_SECONDS = 0.03
RUNWORKERS = ("-m", "django", "runworkers")
#: How a worker says that it is ready, and what it says when something is wrong.
GREETING = "serves queues"
COMPLAINT = re.compile(r"^(?:WARNING|ERROR|CRITICAL)\b.*|^Traceback.*|^.*Warning: .*", re.MULTILINE)


def wait_until(look: Callable[[], Found], what: str, *, seconds: float = 20) -> Found:
    """Return the first true answer of ``look``. Raises AssertionError naming ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"Waited {seconds:g} seconds in vain for {what}.")
        time.sleep(LOOK_AGAIN_SECONDS)
    return found


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's children, the ended ones that nobody has waited for included."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


class Worker:
    """One ``runworkers`` process, in a process group of its own. Made by ``Fleet.start``."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The id of the process, and of its group."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What the process has printed so far."""
        return self._log.read_text(errors="replace")

    @property
    def complaints(self) -> list[str]:
        """The lines of the log at WARNING or above, and whatever else looks like trouble."""
        return COMPLAINT.findall(self.log)

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.poll()

    def wait_until_ready(self, seconds: float = START_SECONDS) -> Self:
        """Wait for the worker's greeting."""
        self.wait_for_log(GREETING, seconds=seconds)
        return self

    def wait_for_log(self, text: str, *, seconds: float = 20) -> None:
        """Wait until the log has ``text`` in it. Raises AssertionError at once if the worker ends before."""

        def look() -> bool:
            ended = self.exit_code is not None
            if text in self.log:
                return True
            if ended:
                raise AssertionError(f"{self.name} ended with exit code {self.exit_code}:\n{self.log}")
            return False

        wait_until(look, f"{self.name} to print {text!r}", seconds=seconds)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone, as an operator or a service manager would."""
        self._process.send_signal(number)

    @property
    def children(self) -> list[int]:
        """The ids of the processes that it has started and not waited for yet."""
        return children_of(self.pid)

    def kill(self) -> None:
        """End the whole group and what it supervises by SIGKILL and wait for its end. Harmless when it has ended."""
        groups = [self.pid, *self.children]
        for number in (signal.SIGKILL, signal.SIGCONT):
            for group in groups:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, number)
        self._process.wait()

    def freeze(self) -> None:
        """Stop the process by SIGSTOP: it keeps its connections and says nothing."""
        self.signal(signal.SIGSTOP)
        # A signal is sent, not delivered: wait until the system says that it has stopped.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self.signal(signal.SIGCONT)

    def wait(self, seconds: float = 20) -> int:
        """Wait for the end of the process and return its exit code. Raises AssertionError after ``seconds``."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {seconds:g} seconds:\n{self.log}") from None

    def stop(self, seconds: float = 20) -> int:
        """Ask for an orderly end by SIGTERM, wait for it and return the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(seconds)


class Fleet:
    """Workers that live as long as the context. ``environment`` is what each of them gets."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.environment = dict(environment)
        self.workers: list[Worker] = []
        self._folder = folder

    def start(
        self,
        *options: str,
        program: Sequence[str] = RUNWORKERS,
        ready: bool = True,
        inside: Sequence[str] = (),
        **environment: str,
    ) -> Worker:
        """
        Start a worker and, if it is to be ``ready``, wait for its greeting. ``environment`` is its own.

        ``inside`` is the beginning of a command line that runs the rest of it in surroundings of its own.
        """
        name = f"worker-{len(self.workers) + 1}"
        command = [*inside, sys.executable, *program, *options]
        variables = {**self.environment, "FLEET_WORKER": name, **environment}
        worker = Worker(name, command, variables, self._folder / f"{name}.log")
        self.workers.append(worker)
        return worker.wait_until_ready() if ready else worker

    def start_many(self, count: int, *options: str, **environment: str) -> list[Worker]:
        """Start ``count`` equal workers at the same time and wait until all are ready."""
        started = [self.start(*options, ready=False, **environment) for _ in range(count)]
        return [worker.wait_until_ready() for worker in started]

    @property
    def complaints(self) -> list[str]:
        """The complaints of all workers."""
        return [f"{worker.name}: {line}" for worker in self.workers for line in worker.complaints]

    def close(self) -> None:
        """End every worker that still runs."""
        for worker in self.workers:
            worker.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
