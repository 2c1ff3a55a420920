"""The helpers for ``unittest``."""

from __future__ import annotations

from .assertions import assert_enqueued, assert_not_enqueued, enqueued
from .clock import advance
from .draining import drain


class WorkQueueTestMixin:
    """
    The helpers as methods, for a ``TestCase`` or a ``TransactionTestCase``.

    ``class ReceiptTests(WorkQueueTestMixin, TestCase)``
    """

    drain = staticmethod(drain)
    advance = staticmethod(advance)
    enqueued = staticmethod(enqueued)
    # As unittest spells its own.
    assertEnqueued = staticmethod(assert_enqueued)  # noqa: N815
    assertNotEnqueued = staticmethod(assert_not_enqueued)  # noqa: N815
