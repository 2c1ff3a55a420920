"""Operate: requeue, discard, prune, and a database that is away."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError

from ...domain.ids import new_id
from ...domain.outcomes import Retry
from ...domain.states import JobState
from ...exceptions import DuplicateJobError, JobNotFoundError, QueueUnavailableError
from ...models import Job
from ...store.operate import Pruned
from .base import MOST_ATTEMPTS, OTHER_QUEUE, QUEUE, ConformanceBase


class OperatingConformance(ConformanceBase):
    """Guarantees of what people do."""

    # -- dead letters --------------------------------------------------------------------------------------------

    def test_requeue_grants_fresh_attempts(self) -> None:
        """Under the old id and with the old history; else it would die again of its first failure."""
        job = self._dead(tenant="acme", args="[1]", priority=5, max_attempts=1)

        self.store.requeue(job.pk, attempts=3)

        assert self.places(job.pk) == ["live"]
        assert len(self.failures(job.pk)) == 1
        claimed = self.claim_one()
        assert (claimed.id, claimed.tenant, claimed.args, claimed.priority) == (job.pk, "acme", "[1]", 5)
        assert claimed.max_attempts - claimed.attempts == 2
        assert claimed.last_error == "OSError: boom"

    def test_requeued_job_is_no_suspect(self) -> None:
        """A person has decided; what came before is history."""
        job = self.enqueue(max_attempts=1)
        self.lapse(self.claim_one())

        self.store.requeue(job.pk, attempts=1)

        assert self.claim_one().lapses == 0

    def test_requeue_grants_what_a_row_can_count(self) -> None:
        """The highest permitted number, on top of those used, is no overflow."""
        job = self._dead(attempts=MOST_ATTEMPTS - 100, max_attempts=MOST_ATTEMPTS)

        self.store.requeue(job.pk, attempts=MOST_ATTEMPTS)

        assert self.claim_one().max_attempts == MOST_ATTEMPTS

    def test_requeue_of_an_unknown_id_is_refused(self) -> None:
        """Also of a job that is live: only a dead letter can come back."""
        live = self.enqueue()

        for job_id in (new_id(), live.pk):
            with self.assertRaises(JobNotFoundError):
                self.store.requeue(job_id, attempts=1)
        assert self.places(live.pk) == ["live"]

    def test_requeue_beside_a_live_key_is_refused(self) -> None:
        """The dead letter stays where it is, and the error names the holder."""
        job = self._dead(dedupe_key="order-1")
        holder = self.enqueue(dedupe_key="order-1")

        with self.assertRaises(DuplicateJobError) as refused:
            self.store.requeue(job.pk, attempts=1)

        assert refused.exception.holder_id == holder.pk
        assert self.places(job.pk) == ["dead"]
        assert self.places(holder.pk) == ["live"]

    def test_requeue_may_be_due_later_and_elsewhere(self) -> None:
        """What comes back in thousands comes back in its time, and where it was sent."""
        job = self._dead()

        self.store.requeue(job.pk, attempts=1, after=timedelta(minutes=5), changes={"queue": "slow", "args": "[7]"})

        row = self.live(job.pk)
        assert (row.state, row.queue, row.args) == (JobState.SCHEDULED, "slow", "[7]")
        assert row.ready_at > self.store.now() + timedelta(minutes=4)

    def test_acknowledged_dead_letter_stays_and_tells_who_has_seen_it(self) -> None:
        """A note changes nothing else; a live job takes none."""
        job, live = self._dead(), self.enqueue()

        self.store.acknowledge(job.pk, by="olga", note="mine")

        letter = self.dead(job.pk)
        assert (letter.acknowledged_by, letter.note) == ("olga", "mine")
        with self.assertRaises(JobNotFoundError):
            self.store.acknowledge(live.pk, by="olga", note="")

    def test_dead_letters_of_one_cause_are_one_group(self) -> None:
        """Groups are found by what was stored at the burial, those that grew last first."""
        for _ in range(3):
            self._dead()

        (group,) = self.store.dead_groups(limit=10, offset=0, most=100, cap=2)

        assert group.size == 2
        assert self.dead(group.newest).fingerprint == group.fingerprint

    def test_discarded_dead_letter_is_gone_with_its_failures(self) -> None:
        """A decision against a job leaves nothing behind."""
        job = self._dead()

        self.store.discard(job.pk)

        assert self.places(job.pk) == []
        assert self.failures(job.pk) == []

    def test_discard_of_what_is_no_dead_letter_is_refused(self) -> None:
        """A live job is not deleted by mistake."""
        live = self.enqueue()

        for job_id in (new_id(), live.pk):
            with self.assertRaises(JobNotFoundError):
                self.store.discard(job_id)
        assert self.places(live.pk) == ["live"]

    def test_dead_letter_of_another_tenant_is_not_found(self) -> None:
        """Who acts for one tenant does not learn what another has."""
        job = self._dead(tenant="acme")

        with self.assertRaises(JobNotFoundError):
            self.store.requeue(job.pk, attempts=1, tenant="zeta")
        with self.assertRaises(JobNotFoundError):
            self.store.discard(job.pk, tenant="zeta")
        assert self.places(job.pk) == ["dead"]

        self.store.requeue(job.pk, attempts=1, tenant="acme")
        assert self.places(job.pk) == ["live"]

    # -- pruning -------------------------------------------------------------------------------------------------

    def test_pruning_takes_what_is_over_and_nothing_else(self) -> None:
        """Live work is never pruned, a finished job not before its time, a dead letter only when told to."""
        brief, long, dead, live = self.enqueue_many(4)
        self.complete(self.claim_one(), retention=timedelta(hours=1))
        self.complete(self.claim_one(), retention=timedelta(hours=9))
        self.bury(self.claim_one())
        self.advance(2 * 3600)

        assert self._prune().finished == 1

        assert self.places(brief.pk) == []
        assert self.places(long.pk) == ["finished"]
        assert self.places(dead.pk) == ["dead"]
        assert self.places(live.pk) == ["live"]

    def test_pruning_dead_letters_takes_their_failures(self) -> None:
        """Where the settings say that dead letters are not kept for ever."""
        job = self._dead()
        self.advance(2 * 86400)

        assert self._prune(dead_retention=timedelta(days=1)).dead == 1

        assert self.places(job.pk) == []
        assert self.failures(job.pk) == []

    def test_pruning_is_bounded(self) -> None:
        """A table that was never pruned is cleaned in small steps."""
        self.enqueue_many(5)
        self.complete(*self.claim(), retention=timedelta(hours=1))
        self.advance(2 * 3600)

        assert [self._prune(batch=2).finished for _ in range(4)] == [2, 2, 1, 0]

    # -- orphans and a database that is away ---------------------------------------------------------------------

    def test_held_work_is_no_orphan(self) -> None:
        """The sweep for jobs without a lease leaves those that have one, lapsed or not."""
        self.enqueue()
        claimed = self.claim_one()
        self.advance(31)

        assert self.store.rescue_orphans().ids == set()
        assert self.live(claimed.id).state == JobState.LEASED

    def test_database_that_is_away_is_named(self) -> None:
        """Whoever enqueues is told what could not be done and where, and that trying again may help."""
        with self.assertRaises(QueueUnavailableError) as raised, self.store.reachable("enqueue"):
            raise self.absence()

        error = raised.exception
        assert (error.operation, error.database, error.retryable) == ("enqueue", self.store.alias, True)

    def test_fault_of_a_statement_is_not_taken_for_an_absence(self) -> None:
        """Trying again does not help against these."""
        with self.assertRaises(IntegrityError), self.store.reachable("enqueue"):
            raise IntegrityError("null")

    def test_time_is_moved_for_every_queue(self) -> None:
        """``shift`` is how tests let time pass; what it leaves behind would be judged by another clock."""
        due = self.store.now() + timedelta(seconds=60)
        for queue in (QUEUE, OTHER_QUEUE):
            self.enqueue(queue=queue, state=JobState.SCHEDULED, ready_at=due)
        self.enqueue()
        self.fail_job(self.claim_one(), Retry(timedelta(seconds=30)))

        self.store.shift(61)
        self.store.promote()

        assert Job.objects.using(self.store.alias).ready().count() == 3

    # -- steps ---------------------------------------------------------------------------------------------------

    def _dead(self, job_id: UUID | None = None, **columns: object) -> Job:
        job = self.enqueue(job_id, **columns)
        self.bury(self.claim_one())
        return job

    def _prune(self, *, batch: int = 100, dead_retention: timedelta | None = None) -> Pruned:
        return self.store.prune(batch=batch, dead_retention=dead_retention, statistics_retention=timedelta(days=7))
