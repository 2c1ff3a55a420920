"""Telling others what happened: signals and log records. Neither may harm the job, and arguments never appear."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.dispatch import Signal

from ..domain.contract import AnyTask, AnyTaskResult
from ..domain.outcomes import ClaimedJob
from ..signals import job_died, lease_lost

logger = logging.getLogger("django_workqueue.signals")


def job_fields(job: ClaimedJob) -> dict[str, Any]:
    """Return what every log record about a job carries as ``extra``."""
    return {
        "job_id": str(job.id),
        "task": job.task,
        "queue": job.queue,
        "tenant": job.tenant,
        "attempt": job.attempts,
        "key": job.dedupe_key,
        "lease_id": job.lease_id,
    }


def announce(signal: Signal, task: AnyTask, make_result: Callable[[], AnyTaskResult]) -> None:
    """Send one of ``django.tasks``' signals, from the backend's class. The result is made only if somebody listens."""
    sender = type(task.get_backend())
    if not signal.has_listeners(sender):
        return
    try:
        result = make_result()
    except Exception:
        logger.exception("Could not describe a job of %s to the receivers of a signal.", task.module_path)
    else:
        # Robust: Django logs a receiver that raises, and the job goes on.
        signal.send_robust(sender, task_result=result)


def announce_death(**facts: Any) -> None:
    """Send job_died."""
    job_died.send_robust(None, **facts)


def announce_loss(**facts: Any) -> None:
    """Send lease_lost."""
    lease_lost.send_robust(None, **facts)
