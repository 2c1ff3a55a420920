"""What ``runworkers`` was asked to do, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from ..conf import get_settings
from ..models.base import NAME_LENGTH


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
    max_jobs: int | None = None
    """Stop after so many jobs."""
    poll_interval: timedelta = field(default_factory=lambda: get_settings().poll_interval)
    """Longest idle time between two looks at the queue when no notification comes."""
    listen: bool = True
    """Whether to hold a connection that hears of new jobs at once, where the database can."""
    shutdown_timeout: timedelta = timedelta(seconds=25)
    """How long a stop waits for running jobs."""
    database: str = field(default_factory=lambda: get_settings().database)

    def __post_init__(self) -> None:
        if not self.queues:
            raise ValueError("--queues is empty. Name at least one queue or pattern.")
        for pattern in (*self.queues, *self.exclude_queues):
            if not pattern or "," in pattern or pattern.startswith("!"):
                raise ValueError(f"{pattern!r} is not a queue name or pattern.")
        if self.concurrency < 1:
            raise ValueError(f"--concurrency is {self.concurrency}. At least 1 job must run at a time.")
        if self.max_jobs is not None and self.max_jobs < 1:
            raise ValueError(f"--max-jobs is {self.max_jobs}. Leave it out to run without end.")
        if self.poll_interval <= timedelta():
            raise ValueError("--poll-interval must be more than zero seconds.")
        if self.shutdown_timeout < timedelta():
            raise ValueError("--shutdown-timeout must not be negative.")
        if len(self.name) > NAME_LENGTH:
            raise ValueError(f"--name has {len(self.name)} characters; at most {NAME_LENGTH} are kept.")

    @property
    def patterns(self) -> str:
        """The served queues as one text, exclusions marked by "!"."""
        return ",".join([*self.queues, *(f"!{pattern}" for pattern in self.exclude_queues)])
