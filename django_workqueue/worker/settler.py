"""Settling what the executors left: successes of a lease in one statement, failures one by one."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from ..domain import masking
from ..domain.limits import LimitedKey
from ..domain.outcomes import ClaimedJob, Settlement, Succeeded
from ..lifecycle import settle as settling
from ..lifecycle.run import interrupted, unrecordable
from ..store import Store
from ..store.reap import Lanes
from .board import Board
from .held import HeldLeases
from .pace import Pace
from .tally import Tally

logger = logging.getLogger("django_workqueue.worker")


class Settler:
    """
    Keeps outcomes until they are written. Belongs to the dispatcher.

    What a broken connection leaves unwritten stays for the next round: as long as the lease lives, it can be recorded.
    """

    def __init__(
        self,
        store: Store,
        worker: str,
        *,
        held: HeldLeases,
        board: Board,
        pace: Pace,
        tally: Tally,
        on_started: Callable[[Lanes], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._held = held
        self._board = board
        self._pace = pace
        self._tally = tally
        self._on_started = on_started
        self._leases: dict[int, dict[UUID, Settlement]] = defaultdict(dict)
        self._freed: set[LimitedKey] = set()
        # Of atomic tasks, which recorded their success themselves.
        self._recorded: dict[UUID, Settlement] = {}
        self._may_be_settled = False

    def __len__(self) -> int:
        """Return the number of leases with unwritten outcomes, and of outcomes that are to be taken note of."""
        return len(self._leases) + len(self._recorded)

    def distrust(self) -> None:
        """Note that the connection broke: what was being written may be recorded without our knowing."""
        self._may_be_settled = True

    def take_freed(self) -> set[LimitedKey]:
        """Return the concurrency keys that have slots free since the last call."""
        freed, self._freed = self._freed, set()
        return freed

    def interrupt(self, jobs: Iterable[ClaimedJob]) -> None:
        """Take these running jobs for interrupted."""
        now = time.monotonic()
        for job in jobs:
            self._keep(interrupted(job, now - (self._board.started_at(job) or now)))

    def abandon(self, settlements: Iterable[Settlement]) -> None:
        """Take these for what came of jobs that go on running."""
        for settlement in settlements:
            self._keep(settlement)

    def settle(self) -> None:
        """Write every outcome that is there."""
        outcomes = self._board.outcomes()
        self._pace.ran(*[settlement.outcome.run_seconds for settlement in outcomes])
        for settlement in outcomes:
            if settlement.committed is None:
                self._keep(settlement)
            else:
                self._recorded[settlement.job.id] = settlement
        for settlement in list(self._recorded.values()):
            if not self._try(partial(self._acknowledge, settlement), [settlement]):
                self._held.spoil(settlement.job.lease_id)
                self._let_go(settlement.job)
        if self._may_be_settled and self._leases:
            self._skip_recorded()
        for lease_id, settlements in list(self._leases.items()):
            self._settle_lease(lease_id, list(settlements.values()))

    def _settle_lease(self, lease_id: int, settlements: Sequence[Settlement]) -> None:
        """Write a lease's outcomes; one that cannot be written must not hold up the others, nor the worker."""
        done = [each for each in settlements if isinstance(each.outcome, Succeeded)]
        failed = [each for each in settlements if not isinstance(each.outcome, Succeeded)]
        if done and not self._try(partial(self._complete, lease_id, done), done):
            for settlement in done:
                if not self._try(partial(self._complete, lease_id, [settlement]), [settlement]):
                    self._record_as_failed(settlement)
        for settlement in failed:
            if not self._try(partial(self._fail, settlement), [settlement]):
                self._give_up(settlement)

    def _try(self, write: Callable[[], None], settlements: Sequence[Settlement]) -> bool:
        """
        Write, and return whether that can be counted as done with.

        A lost connection is the dispatcher's affair; a lock that somebody holds keeps the outcomes for another round.
        """
        try:
            write()
        except Exception as error:
            if isinstance(error, DatabaseError | InterfaceError) and self._store.is_unavailable(error):
                raise
            if self._store.is_locked(error):
                logger.warning("%d outcomes wait for a row that another session holds.", len(settlements))
                return True
            logger.error(  # noqa: TRY400 - without the text: databases quote the row, with the job's arguments in it
                "%d outcomes could not be recorded: %s.",
                len(settlements),
                type(error).__name__,
                extra={"job_ids": [str(each.job.id) for each in settlements]},
            )
            if not masking.is_on():
                logger.debug("What the database said:", exc_info=True)
            return False
        return True

    def _record_as_failed(self, settlement: Settlement) -> None:
        """Turn a success that no database would store into a failure that it does."""
        failed = unrecordable(settlement.job)
        self._keep(failed)
        if not self._try(partial(self._fail, failed), [failed]):
            self._give_up(failed)

    def _give_up(self, settlement: Settlement) -> None:
        """Leave a job to its lease, which is not renewed any more: the reaper records it as lost."""
        self._held.spoil(settlement.job.lease_id)
        self._forget(settlement.job.lease_id, [settlement.job.id])

    def _keep(self, settlement: Settlement) -> None:
        self._leases[settlement.job.lease_id][settlement.job.id] = settlement

    def _complete(self, lease_id: int, done: Sequence[Settlement]) -> None:
        ids = [each.job.id for each in done]
        with self._held.closing(lease_id, ids) as last:
            refused = settling.complete(
                self._store, lease_id, done, worker=self._worker, last=last, on_started=self._on_started
            )
            self._forget(lease_id, ids)
        self._free(done)
        self._tally.add_done([each for each in done if each.job not in refused] if refused else done)
        for job in refused:
            self._refuse(job)

    def _acknowledge(self, settlement: Settlement) -> None:
        """Take note of a success that its own transaction recorded; one that it did not is a failure like others."""
        job = settlement.job
        if not settling.was_committed(self._store, settlement, worker=self._worker):
            del self._recorded[job.id]
            self._keep(settlement._replace(committed=None))
            return
        with self._held.closing(job.lease_id, [job.id]) as last:
            settling.acknowledge(self._store, settlement, worker=self._worker, last=last)
            self._let_go(job)
        self._free([settlement])
        self._tally.add_done([settlement])

    def _let_go(self, job: ClaimedJob) -> None:
        del self._recorded[job.id]
        if job.id in self._leases.get(job.lease_id, ()):
            # As the worker leaves, what ends at that moment is taken for interrupted as well.
            self._forget(job.lease_id, [job.id])
        else:
            self._held.settled(job.lease_id, [job.id])

    def _fail(self, settlement: Settlement) -> None:
        job = settlement.job
        with self._held.closing(job.lease_id, [job.id]) as last:
            decision = settling.fail(self._store, settlement, worker=self._worker, last=last)
            self._forget(job.lease_id, [job.id])
        if decision is None:
            self._refuse(job)
            return
        self._free([settlement])
        self._tally.add_failed(settlement, decision)

    def _refuse(self, job: ClaimedJob) -> None:
        self._held.refused(job.lease_id)
        settling.refuse(self._store, job)

    def _free(self, settled: Sequence[Settlement]) -> None:
        """Note that the slots of these jobs' concurrency keys are free."""
        self._freed.update(
            (job.queue, job.tenant, job.concurrency_key) for job, *_ in settled if job.concurrency_key is not None
        )

    def _forget(self, lease_id: int, ids: Sequence[UUID]) -> None:
        kept = self._leases[lease_id]
        if len(kept) == len(ids):
            del self._leases[lease_id]
        else:
            for job_id in ids:
                del kept[job_id]
        self._held.settled(lease_id, ids)

    def _skip_recorded(self) -> None:
        """Drop outcomes whose commit went through although its answer was lost."""
        kept = [settlement for settlements in self._leases.values() for settlement in settlements.values()]
        recorded = self._store.recorded([each.job for each in kept], self._worker)
        for settlement in kept:
            if settlement.job.id in recorded:
                self._forget(settlement.job.lease_id, [settlement.job.id])
                if isinstance(settlement.outcome, Succeeded):
                    self._tally.add_done([settlement])
        self._may_be_settled = False
