"""What others hold the running body of a slot by, so that they can end it: a thread's by an error raised in it."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
import time
import traceback
from typing import Any, Protocol

from ..conf import get_settings
from ..exceptions import JobCancelledError, JobStoppedError, JobTimeoutError
from ..lifecycle.run import Call


class Overseer(Protocol):
    """Who watches over grips."""

    def watch(self, due: float) -> None:
        """Look at the grips no later than ``due``, by the monotonic clock."""

    def give_up(self, call: Call, why: type[JobStoppedError], stack: str) -> None:
        """Note that a body that was told to end has not."""


class Grip:
    """
    The hold on one slot. The slot takes and lets go; other threads strike.

    An error raised in a thread arrives at some later instruction of it, or not before a native call returns. It must
    never arrive after the body, in the worker's own code or in the next job. So one that was raised and has not arrived
    is taken back when the body ends; and of two strikes at one body only the first is made, so that after one has
    arrived no other is on its way.
    """

    def __init__(self, overseer: Overseer) -> None:
        self._overseer = overseer
        self._lock = threading.Lock()
        self._thread = 0
        self._told: Call | None = None
        self.call: Call | None = None
        self.task: asyncio.Task[Any] | None = None
        self.due: float | None = None
        """When the body is to be struck, or given up if it was."""
        self.struck: type[JobStoppedError] | None = None
        self.was_struck = False
        """Whether any body was, since the slot last asked: its connections may be in the middle of something."""

    # -- the slot's side -----------------------------------------------------------------------------------------

    def take(self, call: Call, task: asyncio.Task[Any] | None = None) -> None:
        """Begin a body in the calling thread, or in ``task``."""
        self._thread = threading.get_ident()
        self.task = task
        self.call = call
        if call.terms.timeout is not None:
            self.due = due = time.monotonic() + call.terms.timeout
            self._overseer.watch(due)

    def let_go(self) -> None:
        """
        End the body. No strike arrives from here on. Safe to repeat, and to be called again if one arrives in here.

        Without the lock in the usual case: whoever strikes says so first and looks for the call then. So either the
        strike is seen here, or the call's absence there.
        """
        self.call = None
        if self.struck is not None:
            with self._lock:
                if self.task is None:
                    _take_back(self._thread)
                self.struck = None
        self.due = None

    @property
    def reason(self) -> type[JobStoppedError] | None:
        """Why the present body was told to end, if it was."""
        return self.struck or (JobCancelledError if self._told is not None and self._told is self.call else None)

    # -- the side of others --------------------------------------------------------------------------------------

    def strike(self, call: Call, why: type[JobStoppedError]) -> None:
        """Make ``call``'s body end, unless it has, or was struck before. It is given up after the grace time."""
        with self._lock:
            if self.struck is not None:
                return
            self.struck = why
            if self.call is not call:
                self.struck = None
                return
            self.was_struck = True
            self.due = due = time.monotonic() + get_settings().timeout_grace.total_seconds()
            if self.task is None:
                _raise(self._thread, why)
            else:
                self._cancel(self.task)
        self._overseer.watch(due)

    def cancel(self, call: Call, *, force: bool) -> None:
        """Pass on that ``call`` is to be cancelled: a coroutine is, a thread is left to notice unless by force."""
        if force:
            self.strike(call, JobCancelledError)
        elif self.call is call and (task := self.task) is not None and self._told is not call:
            self._told = call
            self._cancel(task)

    def escalate(self, now: float) -> None:
        """Do what is due: strike, or give up what was struck and goes on."""
        call, due = self.call, self.due
        if call is None or due is None or due > now:
            return
        if self.struck is None:
            self.strike(call, JobTimeoutError)
            return
        with self._lock:
            why = self.struck
            if self.call is not call or why is None:
                return
            self.due = None
        self._overseer.give_up(call, why, self._stack())

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        task.get_loop().call_soon_threadsafe(task.cancel)

    def _stack(self) -> str:
        """Return where the thread is that does not end: what a person wants to know about it."""
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - documented, for debugging: just that
        return "" if frame is None else "".join(traceback.format_stack(frame))


def _raise(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _take_back(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)
