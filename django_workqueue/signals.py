"""
Signals about what went wrong, for alerting. Receivers that raise are logged and do no harm to the job.

Both are sent in the worker process by whoever wrote the fact, after it was committed. The signals of a job's
normal life (enqueued, started, finished) are those of ``django.tasks``.
"""

from __future__ import annotations

from django.dispatch import Signal

job_died = Signal()
"""A job became a dead letter. With ``job_id`` (UUID), ``task``, ``queue``, ``tenant``, ``reason``, ``last_error``."""

lease_lost = Signal()
"""A worker's report was refused. With ``job_id`` (UUID), ``task``, ``queue``, ``tenant``, ``lease_id``, ``reason``."""
