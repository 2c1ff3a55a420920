"""The attempts of a job, first to last, as its page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from ..domain.masking import Veil
from ..models import Failure, FinishedJob, Job
from ..models.base import JobColumns
from .revealing import veil_of
from .words import age, bounded, duration, read_at

SHOWN = 100
"""Attempts on one page. Seldom are there more than five, but a task may allow thousands."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt. Times are told as seen from ``now``."""

    failure: Failure
    now: datetime
    veil: Veil

    @property
    def started(self) -> str:
        """When it began."""
        return age(self.failure.started_at, self.now)

    @property
    def failed(self) -> str:
        """When it failed."""
        return age(self.failure.failed_at, self.now)

    @property
    def next_try(self) -> str:
        """When the job came back; a dash when this failure was the end."""
        return age(self.failure.next_try_at, self.now)

    @property
    def ran(self) -> str:
        """For how long it ran."""
        return duration(self.failure.failed_at - self.failure.started_at)

    @property
    def message(self) -> str:
        """What the exception said, cut where it is very long."""
        return bounded(self.veil.text(self.failure.message))

    @property
    def traceback(self) -> str:
        """The traceback. Its end says what went wrong, so that is what stays of a long one."""
        return bounded(self.veil.text(self.failure.traceback), keep_end=True)


@dataclass(frozen=True, slots=True)
class History:
    """The newest failed attempts of one job, in order. ``cut`` tells that there were others before them."""

    attempts: list[Attempt]
    cut: bool

    @classmethod
    def of(cls, job: JobColumns, database: str) -> History:
        """Read the history of ``job``, wherever it is now, by one statement."""
        rows = Failure.objects.using(database).filter(job_id=job.pk).order_by("-id")[: SHOWN + 1]
        newest = list(rows)
        now, veil = read_at(job), veil_of(job)
        return cls([Attempt(row, now, veil) for row in reversed(newest[:SHOWN])], cut=len(newest) > SHOWN)


@dataclass(frozen=True, slots=True)
class LastAttempt:
    """The attempt that is under way, or that ended the job: it has no failure that would tell of it."""

    number: int
    state: str
    started: str
    """Of one under way, when it was claimed: only its worker knows more."""
    ended: str
    ran: str
    worker: str

    @classmethod
    def of(cls, job: JobColumns) -> LastAttempt | None:
        """Return that of ``job``; None where all its attempts have failed, or none was made."""
        now = read_at(job)
        match job:
            case Job() if job.lease is not None:
                begun, worker = job.lease.acquired_at, job.lease.worker
                return cls(job.attempts, _("Under way"), age(begun, now), "-", duration(now - begun), worker)
            case FinishedJob() if job.started_at is not None:
                begun, ended = job.started_at, job.finished_at
                told = age(begun, now), age(ended, now), duration(ended - begun)
                return cls(job.attempts, job.get_outcome_display(), *told, job.worker)
        return None
