"""What helpers for tests raise."""

from __future__ import annotations

from uuid import UUID

from ..domain.outcomes import Bury, Cancel, ClaimedJob, Decision, Failed


class JobFailedError(Exception):
    """
    A job that ``drain`` ran has failed.

    What it raised is the ``__cause__``, and ``error_class``, ``message`` and ``traceback`` are its text as stored.
    There is no cause where no body raised: the task is unknown, or its arguments or its result cannot be used.
    """

    def __init__(self, job: ClaimedJob, failed: Failed, decision: Decision) -> None:
        self.job_id: UUID = job.id
        self.task = job.task
        self.attempt = job.attempts
        self.kind = failed.kind
        self.error_class = failed.error_class
        self.message = failed.message
        self.traceback = failed.traceback
        super().__init__(
            f"Job {job.id} of {job.task} failed attempt {job.attempts} of {job.max_attempts} and {_fate(decision)}. "
            f"{failed.error_class or failed.kind.value}: {failed.message}"
        )


def _fate(decision: Decision) -> str:
    if isinstance(decision, Bury):
        return f"is a dead letter ({decision.reason.value})"
    if isinstance(decision, Cancel):
        return "is cancelled"
    return f"is due again in {decision.delay.total_seconds():g} s"
