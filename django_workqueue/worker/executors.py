"""The slots: threads that run plain functions, and one event loop for coroutines."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import connections

from ..domain.outcomes import ClaimedJob, Settlement
from ..lifecycle.run import Call, broken, prepare, run, run_async
from ..store import Store
from .board import Board
from .reset import reset_connections
from .thread import WorkerThread

# Time to end for a loop that is idle; one that a coroutine blocks is left behind.
_JOIN_SECONDS = 0.2


class Executor(WorkerThread):
    """One slot and its thread. It prepares every job, runs plain functions and waits while the loop runs coroutines."""

    def __init__(
        self, number: int, *, board: Board, loop: EventLoop, store: Store, worker: str, on_crash: Callable[[], None]
    ) -> None:
        super().__init__(f"executor-{number}", on_crash)
        self._board = board
        self._loop = loop
        self._store = store
        self._worker = worker

    def work(self) -> None:
        """Take jobs until the board is closed."""
        while (job := self._board.take()) is not None:
            # A new context: language, time zone and whatever a job sets in context variables end with it.
            self._board.finish(contextvars.Context().run(self._guarded_attempt, job))

    def _guarded_attempt(self, job: ClaimedJob) -> Settlement:
        """Attempt a job and clean up; whatever is raised around it, by a signal's receiver say, fails that job."""
        try:
            settlement = self._attempt(job)
        except BaseException as error:  # noqa: BLE001 - a job must not end its worker
            settlement = broken(job, error)
        reset_connections()
        return settlement

    def _attempt(self, job: ClaimedJob) -> Settlement:
        call = prepare(job, self._store, self._worker)
        if not isinstance(call, Call):
            return call
        return self._loop.settle(call) if call.is_async else run(call)


class EventLoop(WorkerThread):
    """One thread with the event loop in which coroutines run, each as a task of its own."""

    def __init__(self, on_crash: Callable[[], None]) -> None:
        super().__init__("event-loop", on_crash)
        self._loop = asyncio.new_event_loop()

    def settle(self, call: Call) -> Settlement:
        """
        Run ``call`` in the loop and return its settlement to the thread that waits for it.

        The thread is the slot: without it, all that was claimed ahead would run at once, each job with its connection.
        """
        return asyncio.run_coroutine_threadsafe(self._run(call), self._loop).result()

    def work(self) -> None:
        """Run the loop until it is stopped."""
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        if not asyncio.all_tasks(self._loop):
            self._loop.close()

    def stop(self) -> None:
        """Let the loop end; what still runs in it has been abandoned."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(_JOIN_SECONDS)

    async def _run(self, call: Call) -> Settlement:
        # A thread of its own for the job's synchronous parts: in asgiref's shared one, a transaction left open by one
        # job would be entered by the next.
        async with ThreadSensitiveContext() as context:
            try:
                settlement = await run_async(call)
            except Exception as error:  # noqa: BLE001 - as in a thread
                settlement = broken(call.job, error)
            if context in SyncToAsync.context_to_thread_executor:
                await sync_to_async(connections.close_all)()
        return settlement
