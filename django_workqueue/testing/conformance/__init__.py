"""
What a store must guarantee, as tests that any store can be held to.

Mix ``StoreConformance`` into a Django ``TestCase`` and say how the store is made::

    class TestMyStore(StoreConformance, TestCase):
        def make_store(self):
            return MyStore("default")
"""

from __future__ import annotations

from .cancelling import CancellingConformance
from .claiming import ClaimingConformance
from .conservation import ConservationConformance
from .enqueueing import EnqueueingConformance
from .fencing import FencingConformance
from .flowing import FlowingConformance
from .limiting import LimitingConformance
from .moving import MovingConformance
from .operating import OperatingConformance
from .pausing import PausingConformance
from .reaping import ReapingConformance
from .scheduling import SchedulingConformance
from .settling import SettlingConformance
from .stats import StatisticsConformance
from .steps import SteppingConformance

__all__ = ["StoreConformance"]


class StoreConformance(
    EnqueueingConformance,
    ClaimingConformance,
    FencingConformance,
    SettlingConformance,
    ReapingConformance,
    CancellingConformance,
    OperatingConformance,
    MovingConformance,
    SteppingConformance,
    FlowingConformance,
    PausingConformance,
    LimitingConformance,
    SchedulingConformance,
    StatisticsConformance,
    ConservationConformance,
):
    """
    Every guarantee. Of the hooks, ``make_store()`` must be given, ``advance(seconds)`` and ``absence()`` may be.

    The store's tables must be empty at the start of each test, as in a ``TestCase``.
    """
