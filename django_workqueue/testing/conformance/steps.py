"""The ledger of steps: one begin wins, the first outcome stays, and only who began may free."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from ...domain.ids import new_id
from ...domain.states import StepState
from ...domain.steps import idempotency_key
from ...models import Step
from ...store.steps import StepRequest
from .base import DAY, ConformanceBase

MANY = 20


class SteppingConformance(ConformanceBase):
    """Guarantees of the steps' verbs, and of pruning towards steps."""

    def test_begin_of_a_fresh_key_wins(self) -> None:
        """It is the caller's, and begun."""
        step, is_mine = self.store.begin_step(self.step())

        assert is_mine
        assert (step.state, step.outcome, step.done_at) == (StepState.BEGUN, "", None)

    def test_of_many_begins_one_wins(self) -> None:
        """The others are answered with the winner's row."""
        asked = self.step()
        answers = [self.store.begin_step(asked) for _ in range(MANY)]

        assert [is_mine for _, is_mine in answers].count(True) == 1
        assert len({step.pk for step, _ in answers}) == 1

    def test_tenants_are_apart(self) -> None:
        """Even where their keys were the same."""
        asked = [self.step(tenant=tenant, key="0" * 64) for tenant in ("acme", "beta")]

        assert [self.store.begin_step(each)[1] for each in asked] == [True, True]

    def test_outcome_that_was_recorded_answers(self) -> None:
        """It is what every later begin is given."""
        asked = self.step()
        begun, _ = self.store.begin_step(asked)

        assert self.record(begun, '{"id":"é"}')

        found, is_mine = self.store.begin_step(asked)
        assert (found.pk, is_mine) == (begun.pk, False)
        assert (found.state, found.outcome) == (StepState.DONE, '{"id":"é"}')
        assert found.done_at is not None

    def test_first_outcome_stays(self) -> None:
        """A second one, a doubt or a release comes too late."""
        begun, _ = self.store.begin_step(self.step())
        self.record(begun, "1")

        assert not self.record(begun, "2")
        assert not self.store.doubt_step(begun.pk)
        assert not self.store.free_step(begun.pk)
        assert self.stored(begun).outcome == "1"

    def test_freed_step_may_be_begun_anew(self) -> None:
        """By a begin that is another one."""
        asked = self.step()
        first, _ = self.store.begin_step(asked)

        assert self.store.free_step(first.pk)

        again, is_mine = self.store.begin_step(asked)
        assert is_mine
        assert again.pk != first.pk

    def test_freeing_nothing_is_no_error(self) -> None:
        """It says so."""
        assert not self.store.free_step(new_id())
        assert not self.store.doubt_step(new_id())

    def test_only_who_began_may_record_or_free(self) -> None:
        """A call that was given up must not touch the one that took its place."""
        asked = self.step()
        first, _ = self.store.begin_step(asked)
        second, is_mine = self.store.begin_step_again(first, asked)
        assert is_mine

        assert not self.record(first, "1")
        assert not self.store.free_step(first.pk)
        assert self.record(second, "2")

    def test_begin_again_wins_once(self) -> None:
        """Of two that find the same unknown step, one calls."""
        asked = self.step()
        first, _ = self.store.begin_step(asked)
        answers = [self.store.begin_step_again(first, asked) for _ in range(2)]

        assert [is_mine for _, is_mine in answers] == [True, False]
        assert answers[0][0].pk == answers[1][0].pk

    def test_begin_again_does_not_undo_an_outcome(self) -> None:
        """It was recorded while the other made up its mind."""
        asked = self.step()
        first, _ = self.store.begin_step(asked)
        self.record(first, "1")

        found, is_mine = self.store.begin_step_again(first, asked)

        assert (found.outcome, is_mine) == ("1", False)

    def test_doubt_stays_until_it_is_resolved(self) -> None:
        """By an outcome, or by a release."""
        begun, _ = self.store.begin_step(self.step())

        assert self.store.doubt_step(begun.pk)
        assert self.stored(begun).state == StepState.UNKNOWN
        assert self.record(begun, "1")

    # -- leases --------------------------------------------------------------------------------------------------

    def test_lease_holds_its_job_for_what_is_left_of_it(self) -> None:
        """By the clock that judges leases."""
        self.enqueue()
        claimed = self.claim_one(lease=30)
        self.advance(10)

        left = self.store.held_for(claimed.id, claimed.lease_id)

        assert left is not None
        assert abs(left - timedelta(seconds=20)) < timedelta(seconds=5)

    def test_lease_holds_nothing_that_it_has_let_go(self) -> None:
        """A job that came back ended its attempt, though the lease lives on for others of its batch."""
        self.enqueue_many(3)
        returned, other, _ = self.claim()
        self.fail_job(returned, last=False)

        assert self.store.held_for(returned.id, returned.lease_id) is None
        assert self.store.held_for(other.id, other.lease_id) is not None
        self.advance(31)
        assert self.store.held_for(other.id, other.lease_id) is None
        assert self.store.held_for(other.id, None) is None

    # -- pruning -------------------------------------------------------------------------------------------------

    def test_old_steps_go(self) -> None:
        """Those of jobs that are over, after their retention; no others."""
        old, _ = self.store.begin_step(self.step())
        self.record(old, "1")
        self.advance(DAY.total_seconds() + 1)
        fresh, _ = self.store.begin_step(self.step())

        assert self._prune_steps() == 1
        assert self._remaining() == {fresh.pk}

    def test_steps_of_work_that_may_run_again_stay(self) -> None:
        """A live job's, and a dead letter's for as long as it is one."""
        self.enqueue_many(2)
        for claimed in (self.claim_one(), self.claim_one()):
            self.store.begin_step(self.step(job_id=claimed.id))
        self.bury(claimed)
        self.advance(DAY.total_seconds() + 1)

        assert self._prune_steps() == 0
        self.store.discard(claimed.id)
        assert self._prune_steps() == 0
        self.advance(DAY.total_seconds() + 1)
        assert self._prune_steps() == 1

    # -- steps ---------------------------------------------------------------------------------------------------

    def step(self, job_id: UUID | None = None, *, tenant: str = "", key: str = "") -> StepRequest:
        """Return a request for a step of a job."""
        job_id = job_id or new_id()
        return StepRequest(
            tenant=tenant,
            key=key or idempotency_key(tenant, job_id, "charge"),
            digest="d" * 64,
            job_id=job_id,
            name="charge",
            worker="worker-1",
            lease_id=None,
            retention=DAY,
        )

    def record(self, step: Step, outcome: str) -> bool:
        """Record an outcome, and return whether it is the one that counts."""
        return self.store.record_step(step.pk, outcome, retention=DAY)

    def stored(self, step: Step) -> Step:
        """Return the row as it is stored."""
        return Step.objects.using(self.store.alias).get(pk=step.pk)

    def _prune_steps(self) -> int:
        return self.store.prune(batch=10, dead_retention=None, statistics_retention=DAY, step_retention=DAY).steps

    def _remaining(self) -> set[UUID]:
        return set(Step.objects.using(self.store.alias).values_list("pk", flat=True))
