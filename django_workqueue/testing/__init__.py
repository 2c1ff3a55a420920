"""
Helpers for the tests of projects that use the queue.

``drain`` runs the jobs that a test has enqueued, ``assert_enqueued`` looks at them, ``advance`` lets time pass.
Names are imported when they are first used: the pytest plugin is loaded before Django's settings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assertions import assert_enqueued, assert_not_enqueued, enqueued
    from .backends import DummyBackend, ImmediateBackend
    from .cases import WorkQueueTestMixin
    from .clock import advance
    from .conformance import StoreConformance
    from .draining import Attempt, drain
    from .errors import JobFailedError
    from .worker_thread import ThreadedWorker

__all__ = [
    "Attempt",
    "DummyBackend",
    "ImmediateBackend",
    "JobFailedError",
    "StoreConformance",
    "ThreadedWorker",
    "WorkQueueTestMixin",
    "advance",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "enqueued",
]

_LAZY = {
    "Attempt": "draining",
    "DummyBackend": "backends",
    "ImmediateBackend": "backends",
    "JobFailedError": "errors",
    "StoreConformance": "conformance",
    "ThreadedWorker": "worker_thread",
    "WorkQueueTestMixin": "cases",
    "advance": "clock",
    "assert_enqueued": "assertions",
    "assert_not_enqueued": "assertions",
    "drain": "draining",
    "enqueued": "assertions",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
