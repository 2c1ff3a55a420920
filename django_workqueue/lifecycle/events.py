"""Telling others what happened: signals and log records. Neither may harm the job, and arguments never appear."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from weakref import ReferenceType

from django.dispatch import Signal

from ..domain.contract import AnyTask, AnyTaskResult
from ..domain.outcomes import ClaimedJob
from ..signals import job_died, lease_lost

logger = logging.getLogger("django_workqueue.signals")


_CONTRACT_MODULES = {"django.tasks.signals", "django_tasks.signals"}


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
    """
    Send one of ``django.tasks``' signals, from the backend's class.

    The result is made only if somebody listens. Django's own receivers do not count: they write a log record for every
    job, and ours are written to ``django_workqueue.*``.
    """
    if not is_listened_to(signal):
        return
    sender = type(task.get_backend())
    try:
        result = make_result()
    except Exception:
        logger.exception("Could not describe a job of %s to the receivers of a signal.", task.module_path)
    else:
        # Robust: Django logs a receiver that raises, and the job goes on.
        signal.send_robust(sender, task_result=result)


def is_listened_to(signal: Signal) -> bool:
    """Whether a receiver has connected that is not the contract's own."""
    return _somebody_listens(signal, tuple(entry[0] for entry in signal.receivers))


@lru_cache(maxsize=16)
def _somebody_listens(signal: Signal, _receivers: tuple[Any, ...]) -> bool:
    """Whether anybody but the contract itself has connected; the receivers' keys are there to notice a change."""
    connected = (entry[1] for entry in signal.receivers)
    receivers = (each() if isinstance(each, ReferenceType) else each for each in connected)
    return any(getattr(each, "__module__", "") not in _CONTRACT_MODULES for each in receivers if each is not None)


def announce_death(**facts: Any) -> None:
    """Send job_died."""
    job_died.send_robust(None, **facts)


def announce_loss(**facts: Any) -> None:
    """Send lease_lost."""
    lease_lost.send_robust(None, **facts)
