"""What a worker holds and what came of it: plain values that cross threads, never ORM objects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from .policies import BackoffPolicy
from .states import DeathReason, FailureKind


class ClaimedJob(NamedTuple):
    """One job under a lease, as the claim statement answers it. ``lease_id`` is the fence of every later write."""

    id: UUID
    queue: str
    tenant: str
    task: str
    args: str
    """JSON text of a list, exactly as encoded at enqueue."""
    kwargs: str
    """JSON text of an object."""
    priority: int
    ready_at: datetime
    attempts: int
    """Claims so far, this one included: the attempt number, from 1."""
    max_attempts: int
    metadata: str
    last_error: str
    enqueued_at: datetime
    lapses: int
    dedupe_key: str | None
    workflow: UUID | None
    """The workflow that the job is a member of."""
    lease_id: int
    """0 where there is none: backends for tests run their jobs without."""
    concurrency_key: str | None = None


class Succeeded(NamedTuple):
    """The task returned. ``result`` is the return value as JSON text."""

    result: str
    run_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The attempt failed. Text only: an exception object may hold sockets, or be impossible to rebuild elsewhere."""

    kind: FailureKind
    error_class: str = ""
    """Dotted path of the exception's class; empty when there was none."""
    message: str = ""
    traceback: str = ""
    run_seconds: float = 0.0
    retry_after: timedelta | None = None
    """The delay that the task itself asked for; None leaves it to the backoff policy."""

    @property
    def summary(self) -> str:
        """One line for ``last_error``: the class's short name and the message."""
        name = self.error_class.rpartition(".")[2] or self.kind.value
        return f"{name}: {self.message}" if self.message else name


class Cancelled(NamedTuple):
    """The attempt was ended because somebody wants the job no more."""

    run_seconds: float = 0.0


Outcome = Succeeded | Failed | Cancelled


@dataclass(frozen=True, slots=True)
class Bury:
    """Move the job to the dead letters."""

    reason: DeathReason


@dataclass(frozen=True, slots=True)
class Cancel:
    """Move the job to the finished ones, as cancelled."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Put the job back, to be ready after ``delay``. ``counted`` False gives the attempt back."""

    delay: timedelta
    counted: bool = True
    if_cancelled: Bury | Cancel = Cancel()
    """What is done instead where the job was to be cancelled meanwhile: only its row knows, read under its lock."""


Decision = Retry | Bury | Cancel


class Settlement(NamedTuple):
    """One job with what came of it, and the policies that its task asked for."""

    job: ClaimedJob
    outcome: Outcome
    backoff: BackoffPolicy
    retention: timedelta = timedelta()
    """How long the finished row is kept; zero keeps none."""
    committed: Succeeded | None = None
    """The success that an atomic task's own transaction recorded; one that may have, where the outcome is a failure."""
