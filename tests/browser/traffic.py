"""The requests that the server of a test is at: tables must not be emptied under them."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

from django.core.signals import request_finished, request_started

PATIENCE_SECONDS = 30.0


class Traffic:
    """
    Knows which threads of the server answer a request.

    A browser that goes away leaves the server at work for it. PostgreSQL would find a deadlock between the locks of its
    reading and those of TRUNCATE, and end one of them.
    """

    def __init__(self) -> None:
        self._answering: set[int] = set()

    def __enter__(self) -> Self:
        request_started.connect(self._begin)
        request_finished.connect(self._end)
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        request_started.disconnect(self._begin)
        request_finished.disconnect(self._end)

    def calm(self) -> None:
        """Wait until no request is being answered."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._answering:
            assert time.monotonic() < deadline, "the server is still at a request"
            time.sleep(0.01)

    def _begin(self, **_: Any) -> None:
        self._answering.add(threading.get_ident())

    def _end(self, **_: Any) -> None:
        self._answering.discard(threading.get_ident())
