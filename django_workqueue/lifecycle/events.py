"""Telling others what happened: signals and log records. Neither may harm the job, and arguments never appear."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any
from weakref import ReferenceType

from django.dispatch import Signal

from ..domain.contract import AnyTask, AnyTaskResult
from ..domain.encoding import decode
from ..domain.outcomes import ClaimedJob
from ..domain.steps import idempotency_key
from ..domain.trace import correlation_of
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
        "idempotency_key": idempotency_key(job.tenant, job.id),
        "lease_id": job.lease_id,
        "correlation_id": correlation_of(job.id, _readable(job.metadata)),
    }


def _readable(metadata: str) -> Mapping[str, Any]:
    """Decode metadata; a record about a job whose row is damaged does without."""
    try:
        decoded: dict[str, Any] = decode(metadata, dict)
    except ValueError:
        return {}
    return decoded


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
    if not signal.receivers:
        return False
    known, answer = _listeners.get(signal, _UNKNOWN)
    # Asked for every job. Receivers that are still the same are found so by identity, at the speed of C.
    if known != signal.receivers:
        answer = any(map(_is_foreign, signal.receivers))
        _listeners[signal] = list(signal.receivers), answer
    return answer


_UNKNOWN: tuple[list[Any], bool] = [], False
_listeners: dict[Signal, tuple[list[Any], bool]] = {}


def _is_foreign(entry: Any) -> bool:
    """Whether a signal's entry is of a living receiver that anybody but the contract itself has connected."""
    receiver = entry[1]() if isinstance(entry[1], ReferenceType) else entry[1]
    return receiver is not None and getattr(receiver, "__module__", "") not in _CONTRACT_MODULES


def announce_death(**facts: Any) -> None:
    """Send job_died."""
    job_died.send_robust(None, **facts)


def announce_loss(**facts: Any) -> None:
    """Send lease_lost."""
    lease_lost.send_robust(None, **facts)
