"""The slots: threads that run plain functions, and one event loop for coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import connections

from ..domain.outcomes import ClaimedJob, Settlement
from ..lifecycle.run import Call, broken, prepare, run, run_async, stopped, unstarted
from ..store import Store
from .board import Board
from .grip import Grip
from .job_link import WorkerLink
from .reset import drop_connections, reset_connections
from .supervision import Supervision
from .thread import WorkerThread

# Time to end for a loop that is idle; one that a coroutine blocks is left behind.
_JOIN_SECONDS = 0.2

Attempt = Call | Settlement
"""A job that can be called, or what came of it already."""


class Executor(WorkerThread):
    """One slot and its thread. It prepares every job, runs plain functions and waits while the loop runs coroutines."""

    def __init__(
        self,
        number: int,
        *,
        board: Board,
        loop: EventLoop,
        store: Store,
        worker: str,
        supervision: Supervision,
        on_crash: Callable[[], None],
    ) -> None:
        super().__init__(f"executor-{number}", on_crash)
        self._desk = board.open_desk()
        self._loop = loop
        self._store = store
        self._worker = worker
        self._supervision = supervision
        self.grip = supervision.new_grip()

    def work(self) -> None:
        """Take jobs until the board is closed."""
        while (job := self._desk.take()) is not None:
            attempt: Attempt | None = self._prepare(job)
            while attempt is not None:
                attempt = self._go_on(attempt)

    def _go_on(self, attempt: Attempt) -> Attempt | None:
        """Bring an attempt to its end, and return the one that was prepared meanwhile, if any."""
        if isinstance(attempt, Call) and attempt.terms.is_async:
            return self._loop.serve(attempt, self)
        # A new context: language, time zone and whatever a job sets in context variables end with it.
        settlement = contextvars.Context().run(self._run, attempt) if isinstance(attempt, Call) else attempt
        self.finish(settlement)
        return None

    def _prepare(self, job: ClaimedJob) -> Attempt:
        try:
            if self._supervision.cancels.includes(job):
                return unstarted(job)
            return prepare(job, self._store, self._worker, link_to=self._link_to)
        except BaseException as error:  # noqa: BLE001 - a job must not end its worker
            return broken(job, error)

    def _link_to(self, job: ClaimedJob) -> WorkerLink:
        return self._supervision.link_to(job, self._store)

    def _run(self, call: Call) -> Settlement:
        """Run a job and clean up; whatever is raised around it, by a signal's receiver say, fails that job."""
        try:
            settlement = run(call, hold=self.grip)
        except BaseException as error:  # noqa: BLE001 - a job must not end its worker
            settlement = broken(call.job, error)
        if self.grip.was_struck:
            self.grip.was_struck = False
            drop_connections()
        reset_connections()
        return settlement

    def finish(self, settlement: Settlement) -> None:
        """Leave a job's outcome on the board."""
        self._desk.finish(settlement)

    def next_attempt(self) -> Attempt | None:
        """Prepare the next job that this executor already has in front of it."""
        job = self._desk.next()
        return None if job is None else self._prepare(job)


class EventLoop(WorkerThread):
    """One thread with the event loop in which coroutines run, each as a task of its own."""

    def __init__(self, on_crash: Callable[[], None]) -> None:
        super().__init__("event-loop", on_crash)
        self._loop = asyncio.new_event_loop()

    def serve(self, call: Call, executor: Executor) -> Attempt | None:
        """
        Run ``call``, and the coroutines behind it at the executor's desk, while its thread waits.

        The thread is the slot: without it, all that was claimed ahead would run at once, each job with its connection.
        Returns the first attempt that is no coroutine, for the thread to go on with.
        """
        return asyncio.run_coroutine_threadsafe(self._serve(call, executor), self._loop).result()

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

    async def _serve(self, call: Call, executor: Executor) -> Attempt | None:
        attempt: Attempt | None = call
        while isinstance(attempt, Call) and attempt.terms.is_async:
            executor.finish(await self._ended(attempt, executor.grip))
            attempt = executor.next_attempt()
        return attempt

    async def _ended(self, call: Call, grip: Grip) -> Settlement:
        """Run a coroutine as a task of its own, which others may cancel, and return what came of it."""
        begun = time.monotonic()
        running = self._loop.create_task(_settled(call), context=contextvars.Context())
        grip.take(call, running)
        # Waited for, not awaited: a coroutine that cancels its own task must not cancel this one.
        await asyncio.wait([running])
        why = grip.reason
        grip.let_go()
        if running.cancelled():
            return stopped(call, why, time.monotonic() - begun) if why else broken(call.job, asyncio.CancelledError())
        error = running.exception()
        return running.result() if error is None else broken(call.job, error)


async def _settled(call: Call) -> Settlement:
    """Await a job's coroutine and clean up."""
    # A thread of its own for the job's synchronous parts: in asgiref's shared one, a transaction left open by one job
    # would be entered by the next.
    async with ThreadSensitiveContext() as context:
        settlement = await run_async(call)
        if context in SyncToAsync.context_to_thread_executor:
            # A body that has returned has succeeded: to cancel it is too late.
            with contextlib.suppress(asyncio.CancelledError):
                await sync_to_async(connections.close_all)()
    return settlement
