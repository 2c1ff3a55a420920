"""What stands over the slots of one worker: how a running job is reached from outside, and how it reaches out."""

from __future__ import annotations

from collections.abc import Callable

from ..domain.outcomes import ClaimedJob
from ..exceptions import JobStoppedError
from ..lifecycle.run import Call, stopped
from ..store import Store
from .board import Board
from .cancels import Cancels
from .errands import Errands
from .grip import Grip
from .job_link import WorkerLink
from .watchdog import Watchdog


class Supervision:
    """One for each worker process. ``recycle`` is asked, with the reason, when only a new process frees a slot."""

    def __init__(self, board: Board, recycle: Callable[[str], None], on_crash: Callable[[], None]) -> None:
        self._board = board
        self._recycle = recycle
        self.watchdog = Watchdog(self._give_up, on_crash)
        self.cancels = Cancels(self.watchdog.grips)
        self.errands = Errands()

    def new_grip(self) -> Grip:
        """Return the grip of one more slot."""
        return self.watchdog.new_grip()

    def link_to(self, job: ClaimedJob, store: Store) -> WorkerLink:
        """Return what a running job reaches out by. ``store`` is of the job's thread."""
        return WorkerLink(job, store, self.errands, self.cancels)

    def _give_up(self, call: Call, why: type[JobStoppedError], stack: str) -> None:
        """Free the slot in the only way that is left."""
        run_seconds = self._board.run_seconds(call.job)
        # Recorded only when the process is about to go: its thread must not go on beside the next attempt.
        self._board.abandoned[call.job.id] = stopped(call, why, run_seconds, stack)
        self._recycle(f"job {call.job.id} of {call.job.task} does not end ({why.__name__}).")
