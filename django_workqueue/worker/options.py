"""What ``runworkers`` was asked to do, checked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from ..conf import get_settings
from ..models.base import NAME_LENGTH

_SHORTEST_WATCHDOG = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Options of one worker process. Raises ValueError for what cannot work, naming the option."""

    queues: tuple[str, ...] = ("*",)
    """Names or patterns of the queues to serve. They take turns, unless ``strict_order``."""
    exclude_queues: tuple[str, ...] = ()
    strict_order: bool = False
    """Serve a queue only when those listed before it have nothing ready."""
    concurrency: int = 8
    """Jobs that run at the same time."""
    name: str = ""
    """A name to recognise the worker by; the id is fresh at every start all the same."""
    burst: bool = False
    """Stop when nothing is ready and nothing runs."""
    processes: int | None = None
    """Processes that a supervisor keeps running; without, the command itself is the one worker."""
    max_jobs: int | None = None
    """Stop, or be replaced, after so many jobs."""
    max_memory: int | None = None
    """Bytes of resident memory from which the process is replaced, or stops."""
    max_lifetime: timedelta | None = None
    """Age from which the process is replaced, or stops; each draws its own from the last fifth of it."""
    poll_interval: timedelta = field(default_factory=lambda: get_settings().poll_interval)
    """Longest idle time between two looks at the queue when no notification comes."""
    listen: bool = True
    """Whether to hold a connection that hears of new jobs at once, where the database can."""
    shutdown_timeout: timedelta = timedelta(seconds=25)
    """How long a stop waits for running jobs."""
    heartbeat_file: Path | None = None
    """A file that is touched while the dispatcher makes progress, and removed at the end."""
    health_port: int | None = None
    """Port for the probes of health."""
    health_host: str = "127.0.0.1"
    watchdog: timedelta | None = None
    """How long the dispatcher may make no round, although the database answers, before the process is ended."""
    database: str = field(default_factory=lambda: get_settings().database)

    def __post_init__(self) -> None:
        if not self.queues:
            raise ValueError("--queues is empty. Name at least one queue or pattern.")
        for pattern in (*self.queues, *self.exclude_queues):
            if not pattern or "," in pattern or pattern.startswith("!"):
                raise ValueError(f"{pattern!r} is not a queue name or pattern.")
        if len(self.name) > self._longest_name:
            raise ValueError(f"--name has {len(self.name)} characters; at most {self._longest_name} are kept.")
        self._check_counts()
        self._check_durations()

    def _check_counts(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"--concurrency is {self.concurrency}. At least 1 job must run at a time.")
        if self.processes is not None and self.processes < 1:
            raise ValueError(f"--processes is {self.processes}. Leave it out to run without a supervisor.")
        if self.max_jobs is not None and self.max_jobs < 1:
            raise ValueError(f"--max-jobs is {self.max_jobs}. Leave it out to run without end.")

    def _check_durations(self) -> None:
        if self.poll_interval <= timedelta():
            raise ValueError("--poll-interval must be more than zero seconds.")
        if self.max_lifetime is not None and self.max_lifetime <= timedelta():
            raise ValueError("--max-lifetime must be more than zero seconds.")
        if self.watchdog is not None and self.watchdog < _SHORTEST_WATCHDOG:
            raise ValueError("--watchdog must be at least 10 seconds: an idle dispatcher sleeps for half of that.")
        if self.shutdown_timeout < timedelta():
            raise ValueError("--shutdown-timeout must not be negative.")

    @property
    def _longest_name(self) -> int:
        """Processes have their number behind the name."""
        return NAME_LENGTH - len(f"-{self.processes}") if self.processes else NAME_LENGTH

    def of_process(self, number: int) -> WorkerOptions:
        """Return the options of one of several processes: a name is one's own, and the supervisor answers probes."""
        name = f"{self.name}-{number}" if self.name else ""
        return replace(self, name=name, heartbeat_file=None, health_port=None)

    @property
    def patterns(self) -> str:
        """The served queues as one text, exclusions marked by "!"."""
        return ",".join([*self.queues, *(f"!{pattern}" for pattern in self.exclude_queues)])
