"""The policies that decide when a failed job runs again, and when it stops for good. No clock, no database."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

# Past 2**60 any sane base has met its cap, and float arithmetic would overflow near 2**1024.
_MAX_DOUBLINGS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffPolicy:
    """How long a job waits after a failed attempt: doubling from ``base``, at most ``cap``, spread by ``jitter``."""

    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(seconds=600)
    jitter: float = 0.1
    """The share of the delay, 0 to 1, that spreading may take off. It never adds, so ``cap`` is never exceeded."""

    def exact(self, attempt: int) -> timedelta:
        """Return the delay after failed attempt number ``attempt`` (from 1) before jitter; zero for 0 and less."""
        if attempt <= 0:
            return timedelta()
        seconds = self.base.total_seconds() * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS)
        return timedelta(seconds=min(seconds, self.cap.total_seconds()))

    def delay(self, attempt: int, job_id: UUID) -> timedelta:
        """
        Return the delay after failed attempt ``attempt`` of ``job_id``: ``exact`` times a factor in [1 - jitter, 1].

        The factor is drawn from a hash of both, so that jobs which failed together come back apart, and
        yet one job's delays are the same in every process and every test run.
        """
        return self.exact(attempt) * (1 - self.jitter * _spread(job_id, attempt))


def _spread(job_id: UUID, attempt: int) -> float:
    digest = hashlib.blake2b(b"%s:%d" % (job_id.bytes, attempt), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def reclaim_delay(backoff: BackoffPolicy, lapses: int, job_id: UUID) -> timedelta:
    """
    Return how long a job waits after its ``lapses``-th lapsed lease in a row.

    The first lapse is most often a deploy or a lost host: prompt. From the second on the job itself is
    the suspect, and must not spin through the fleet: it backs off like a failure.
    """
    return backoff.delay(lapses - 1, job_id)


def exhausted(attempts: int, max_attempts: int) -> bool:
    """Whether a job that failed its attempt number ``attempts`` has none left."""
    return attempts >= max_attempts
