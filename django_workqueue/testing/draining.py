"""``drain``: a worker's claiming, running and settling, on the test's own connection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal
from uuid import UUID, uuid4

from ..domain.encoding import decode
from ..domain.limits import Hold
from ..domain.outcomes import Bury, Cancel, ClaimedJob, Failed, Settlement, Succeeded
from ..exceptions import LeaseLostError
from ..lifecycle import claim as claiming
from ..lifecycle import settle as settling
from ..store import Store, store_for
from ..worker.lanes import LaneBook
from ..worker.options import WorkerOptions
from ..worker.tally import Tally
from .attempts import Attempted, attempt
from .clock import maintain, next_firing
from .errors import JobFailedError
from .links import DirectLink

MOST_ATTEMPTS = 10_000
"""Attempts of one drain without ``max_jobs``: a job that enqueues itself would keep it going for ever."""
# A step of time that makes something due, but for the rounding of times on their way to the database.
_SHORTEST_STEP = timedelta(milliseconds=1)

Ending = Literal["succeeded", "retry", "dead", "cancelled", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt that ``drain`` made."""

    job_id: UUID
    task: str
    queue: str
    tenant: str
    number: int
    """From 1 for each job."""
    ending: Ending
    """
    ``"retry"``: it failed and comes back. ``"dead"``: it is a dead letter. ``"cancelled"``: somebody wants it no more.
    ``"refused"``: its lease did not hold.
    """
    result: Any = None
    error: JobFailedError | LeaseLostError | None = None


def drain(
    queues: str | Iterable[str] | None = None,
    max_jobs: int | None = None,
    *,
    raise_errors: bool = True,
    until: datetime | timedelta | float | None = None,
    database: str | None = None,
) -> list[Attempt]:
    """
    Run what is ready, as a worker would, and return the attempts in order. Works inside a ``TestCase``.

    Jobs are claimed, run and settled by the worker's own code, one after the other, in the calling thread and on its
    connection: nothing needs to be committed. Due jobs are made ready and lapsed leases reaped first. Jobs that
    bodies enqueue are run too.

    ``queues`` is a name or pattern, or several; all by default. ``max_jobs`` stops it after so many attempts.

    With ``raise_errors`` the first failed attempt raises JobFailedError once it is settled (LeaseLostError where its
    settlement was refused); without, the caller looks at the attempts.

    ``until``, a moment or a delay (seconds or timedelta), lets time pass up to then and runs what comes due on the
    way, retries included. See ``advance`` for what that does to stored times. None lets no time pass.

    Where the test has a transaction open, each body runs inside a savepoint of it. A database error in the body
    breaks that and not the test's transaction: then all that the body wrote is undone, whereas a worker would keep what
    came before the failed statement unless it was in ``atomic()``. Callbacks given to ``transaction.on_commit`` run
    when the body ends; in a worker, when its transaction does. From ``async`` code call ``sync_to_async(drain)``.
    """
    names = (queues,) if isinstance(queues, str) else tuple(queues or ("*",))
    drainer = _Drainer(store_for(database), names, raise_errors=raise_errors, until=until)
    return drainer.run(max_jobs)


class _Drainer:
    """The state of one drain."""

    def __init__(
        self,
        store: Store,
        queues: tuple[str, ...],
        *,
        raise_errors: bool,
        until: datetime | timedelta | float | None,
    ) -> None:
        self._store = store
        self._lanes = LaneBook(WorkerOptions(queues=queues, database=store.alias))
        self._raise_errors = raise_errors
        self._time_left = _delay(until, store)
        self._worker = f"drain:{uuid4().hex[:12]}"
        self._tally = Tally(self._worker)
        self._attempts: list[Attempt] = []
        self._rate_ends: list[timedelta] = []

    def run(self, max_jobs: int | None) -> list[Attempt]:
        while max_jobs is None or len(self._attempts) < max_jobs:
            job = self._next_job()
            if job is not None:
                self._run(job)
                if max_jobs is None:
                    self._refuse_endless_work()
            elif not self._pass_time():
                break
        self._write_statistics()
        return self._attempts

    def _next_job(self) -> ClaimedJob | None:
        """Claim the job whose turn it is; None when nothing is ready."""
        maintain(self._store)
        # Time is moved here, and what was held back by it may be free by now.
        self._lanes.let_go(firm=True)
        self._rate_ends.clear()
        self._lanes.walk(self._store)
        # Marks save time where the backlog is long. Here jobs come back with earlier times, for time is moved.
        self._lanes.forget_marks()
        for queue, rotation in list(self._lanes.turns()):
            # A claim that finds nothing drops the lanes that it looked at.
            while self._lanes.open_lanes(queue):
                jobs = claiming.claim(
                    self._store, rotation, queue=queue, worker=self._worker, limit=1, pauses=self._lanes.pauses
                )
                if rotation.hold:
                    self._hold(queue, rotation.hold)
                if jobs:
                    self._lanes.served(queue)
                    return jobs[0]
        return None

    def _hold(self, queue: str, hold: Hold) -> None:
        self._lanes.hold(queue, hold)
        if hold.firm:
            self._rate_ends.append(hold.wait)

    def _pass_time(self) -> bool:
        """Move on to when something may be run, or to the end of the time that may pass. False when it has passed."""
        if not self._time_left:
            return False
        waits = (self._store.next_due(), next_firing(self._store), *self._rate_ends)
        due = [wait for wait in waits if wait is not None]
        step = min(max(min(due, default=self._time_left), _SHORTEST_STEP), self._time_left)
        self._store.shift(step.total_seconds())
        self._time_left -= step
        return True

    def _run(self, job: ClaimedJob) -> None:
        attempted = attempt(job, self._store, self._worker, commits=True, link_to=partial(DirectLink, self._store))
        made = self._settle(job, attempted)
        self._attempts.append(made)
        error = attempted.interrupt or (made.error if self._raise_errors else None)
        if error is not None:
            self._write_statistics()
            raise error

    def _settle(self, job: ClaimedJob, attempted: Attempted) -> Attempt:
        settlement = attempted.settlement
        committed = settlement.committed
        if committed is not None and settling.was_committed(self._store, settlement, worker=self._worker):
            settling.acknowledge(self._store, settlement, worker=self._worker, last=True)
            return self._done(settlement, committed)
        if isinstance(settlement.outcome, Succeeded):
            if settling.complete(self._store, job.lease_id, [settlement], worker=self._worker, last=True):
                return self._refused(job)
            return self._done(settlement, settlement.outcome)
        return self._fail(job, attempted)

    def _done(self, settlement: Settlement, success: Succeeded) -> Attempt:
        self._tally.add_done([settlement])
        return _attempt(settlement.job, "succeeded", result=decode(success.result, object))

    def _fail(self, job: ClaimedJob, attempted: Attempted) -> Attempt:
        decision = settling.fail(self._store, attempted.settlement, worker=self._worker, last=True)
        if decision is None:
            return self._refused(job)
        self._tally.add_failed(attempted.settlement, decision)
        failed = attempted.settlement.outcome
        if isinstance(decision, Cancel) or not isinstance(failed, Failed):
            return _attempt(job, "cancelled")
        error = JobFailedError(job, failed, decision)
        error.__cause__ = attempted.error
        return _attempt(job, "dead" if isinstance(decision, Bury) else "retry", error=error)

    def _refused(self, job: ClaimedJob) -> Attempt:
        return _attempt(job, "refused", error=settling.refuse(self._store, job))

    def _refuse_endless_work(self) -> None:
        if len(self._attempts) >= MOST_ATTEMPTS:
            raise RuntimeError(
                f"drain() made {MOST_ATTEMPTS} attempts, the last at {self._attempts[-1].task}. "
                "Does it enqueue itself? Pass max_jobs to run only so many."
            )

    def _write_statistics(self) -> None:
        if counts := self._tally.take_counts():
            self._store.add_counts(counts)
        if minutes := self._tally.minutes():
            self._store.write_minutes(minutes)


def _attempt(
    job: ClaimedJob,
    ending: Ending,
    *,
    result: Any = None,
    error: JobFailedError | LeaseLostError | None = None,
) -> Attempt:
    return Attempt(
        job_id=job.id,
        task=job.task,
        queue=job.queue,
        tenant=job.tenant,
        number=job.attempts,
        ending=ending,
        result=result,
        error=error,
    )


def _delay(until: datetime | timedelta | float | None, store: Store) -> timedelta:
    """Return how much time may pass; none for a moment that is over."""
    if until is None:
        return timedelta()
    if isinstance(until, datetime):
        return max(until - store.now(), timedelta())
    delay = until if isinstance(until, timedelta) else timedelta(seconds=until)
    if delay < timedelta():
        raise ValueError(f"until is {until!r}. Time only passes: give a delay of zero or more.")
    return delay
