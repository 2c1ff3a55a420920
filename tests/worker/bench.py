"""A dispatcher on the real store, with its executors played by the test: one step at a time, in one thread."""

from __future__ import annotations

from datetime import timedelta

from django_workqueue.domain.outcomes import ClaimedJob
from django_workqueue.store import store_for
from django_workqueue.worker.dispatcher import Dispatcher
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.shutdown import StopRequest
from django_workqueue.worker.tally import Tally

from .jobs import broken, done

WORKER = "web1:4:5f3a"


class Bench:
    """One worker without threads."""

    def __init__(self, **options) -> None:
        self.options = WorkerOptions(**{"concurrency": 2, "shutdown_timeout": timedelta()} | options)
        self.store = store_for()
        self.stop = StopRequest()
        self.tally = Tally(WORKER)
        self.dispatcher = Dispatcher(self.options, self.store, WORKER, self.stop, self.tally)
        self.stop.wake = self.dispatcher.wake
        self.board, self.held = self.dispatcher.board, self.dispatcher.held
        self.desks = [self.board.open_desk() for _ in range(self.options.concurrency)]

    def round(self) -> bool:
        """Do one round as the dispatcher does it; False when something went wrong in it."""
        return self.dispatcher._guarded(self.dispatcher._round)

    def start(self) -> list[ClaimedJob]:
        """Start whatever waits, one job a slot, and return it."""
        free = [desk for desk in self.desks if self.board.waiting and self.board.running < self.board.slots]
        return [job for desk in free if self.board.waiting and (job := desk.take()) is not None]

    def finish(self, *jobs: ClaimedJob, fail: bool = False) -> None:
        """Leave the outcomes of running jobs."""
        for job in jobs:
            self.desks[0].finish(broken(job) if fail else done(job))

    def work(self, rounds: int = 50) -> int:
        """Claim, run and settle until nothing is left, and return how many jobs ran."""
        count = 0
        for _ in range(rounds):
            self.round()
            started = self.start()
            self.finish(*started)
            count += len(started)
            if not started and not len(self.held):
                break
        return count
