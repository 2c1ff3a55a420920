"""Enqueue: what is accepted is stored as it is, once, in the caller's transaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from ...domain.ids import new_id
from ...domain.states import JobState
from ...exceptions import InvalidJobError
from ...models import Job
from .base import OTHER_QUEUE, QUEUE, ConformanceBase


class EnqueueingConformance(ConformanceBase):
    """Guarantees of ``insert``."""

    def test_job_is_stored_as_it_was_given(self) -> None:
        """Nothing is changed on the way: not the text of the arguments, not the order of their keys."""
        given: dict[str, Any] = {
            "tenant": "acme",
            "task": "shop.tasks.send",
            "args": '[1e22,2,"ü"]',
            "kwargs": '{"b":1,"a":2.0}',
            "priority": -7,
            "max_attempts": 9,
            "dedupe_key": "order-1",
            "metadata": '{"team":"shop"}',
        }

        job = self.enqueue(**given)

        stored = self.live(job.pk)
        assert {name: getattr(stored, name) for name in given} == given
        assert (stored.queue, stored.state, stored.attempts) == (QUEUE, JobState.READY, 0)

    def test_new_job_carries_the_stores_own_time(self) -> None:
        """A caller's clock may be minutes off, and then no age and no delay would be true."""
        before = self.store.now()

        job = self.live(self.enqueue().pk)

        # The columns of some databases end at milliseconds.
        assert before - timedelta(milliseconds=1) <= job.enqueued_at <= self.store.now()
        assert job.ready_at == job.enqueued_at

    def test_times_of_the_caller_are_kept(self) -> None:
        """Work that is carried over from elsewhere keeps its age, and its due time."""
        long_ago, some_day = datetime(2020, 2, 29, 12, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)

        job = self.enqueue(enqueued_at=long_ago, ready_at=some_day, state=JobState.SCHEDULED)

        stored = self.live(job.pk)
        assert (stored.enqueued_at, stored.ready_at) == (long_ago, some_day)

    def test_rolled_back_job_never_was(self) -> None:
        """A job and the rows that it is about are committed together, or not at all."""
        with transaction.atomic(using=self.store.alias):
            job = self.enqueue()
            transaction.set_rollback(True, using=self.store.alias)

        assert self.places(job.pk) == []
        assert self.claim() == []

    def test_live_id_answers_the_stored_job(self) -> None:
        """Enqueueing twice under one id, since an answer was lost, makes one job; the first one counts."""
        job_id = new_id()
        self.enqueue(job_id, args="[1]")

        again = self.insert(job_id, args="[2]", queue=OTHER_QUEUE)

        assert (again.job.pk, again.duplicate) == (job_id, True)
        assert (self.live(job_id).args, self.live(job_id).queue) == ("[1]", QUEUE)

    def test_running_id_answers_the_stored_job(self) -> None:
        """A job is live until it is settled."""
        job_id = new_id()
        self.enqueue(job_id)
        self.claim_one()

        assert self.insert(job_id).duplicate
        assert self.live(job_id).state == JobState.LEASED

    def test_live_key_answers_its_holder(self) -> None:
        """One live job for each key, and whoever comes second is told which."""
        first = self.enqueue(dedupe_key="order-1")

        again = self.insert(dedupe_key="order-1")

        assert (again.job.pk, again.duplicate) == (first.pk, True)
        assert len(self.claim()) == 1

    def test_key_belongs_to_one_tenant_and_queue(self) -> None:
        """A tenant's key must never swallow the work of another."""
        self.enqueue(dedupe_key="order-1")

        assert not self.insert(dedupe_key="order-1", tenant="acme").duplicate
        assert not self.insert(dedupe_key="order-1", queue=OTHER_QUEUE).duplicate

    def test_jobs_without_a_key_never_collapse(self) -> None:
        """No key is no claim to be the only one."""
        assert not self.insert().duplicate
        assert not self.insert().duplicate
        assert len(self.claim()) == 2

    def test_clash_leaves_the_transaction_usable(self) -> None:
        """A duplicate is an answer, not an error that undoes what else the caller wrote."""
        with transaction.atomic(using=self.store.alias):
            before = self.enqueue(dedupe_key="order-1")
            self.insert(dedupe_key="order-1")
            after = self.enqueue()

        assert self.places(before.pk) == self.places(after.pk) == ["live"]

    def test_duplicates_within_one_insert_are_told(self) -> None:
        """The first of two equal ids or keys in one call is stored, the second is its duplicate."""
        job_id = new_id()
        jobs = [Job(id=job_id, queue=QUEUE, task="a.b"), Job(id=job_id, queue=QUEUE, task="a.b")]
        jobs += [Job(id=new_id(), queue=QUEUE, task="a.b", dedupe_key="order-1") for _ in range(2)]

        stored = self.store.insert(jobs, given_ids=frozenset([job_id]))

        assert [each.duplicate for each in stored] == [False, True, False, True]
        assert stored[0].job.pk == stored[1].job.pk == job_id
        assert stored[2].job.pk == stored[3].job.pk == jobs[2].pk

    def test_dead_id_twice_in_one_insert_is_in_one_place(self) -> None:
        """The second is a duplicate of the first, for which the dead letter makes room."""
        job_id = new_id()
        self.enqueue(job_id)
        self.bury(self.claim_one())

        self.store.insert([Job(id=job_id, queue=QUEUE, task="a.b") for _ in range(2)], given_ids=frozenset([job_id]))

        assert self.places(job_id) == ["live"]

    def test_id_of_another_tenant_is_refused(self) -> None:
        """Its job would be told to this tenant, or make room for this tenant's; nothing of the batch is stored."""
        live, dead, finished = new_id(), new_id(), new_id()
        self.enqueue(dead, tenant="rival")
        self.bury(self.claim_one())
        self.enqueue(finished, tenant="rival")
        self.complete(self.claim_one())
        self.enqueue(live, tenant="rival")

        for job_id, place in ((live, "live"), (dead, "dead"), (finished, "finished")):
            jobs = [Job(id=new_id(), queue=QUEUE, task="a.b"), Job(id=job_id, queue=QUEUE, task="a.b", tenant="acme")]
            with self.assertRaises(InvalidJobError):
                self.store.insert(jobs, given_ids=frozenset([job_id]))
            assert self.places(job_id) == [place]
        assert Job.objects.using(self.store.alias).count() == 1

    def test_insert_of_any_size_is_whole_and_in_order(self) -> None:
        """A database limits what one statement may hold; callers need not know."""
        jobs = [Job(id=new_id(), queue=QUEUE, task="a.b", dedupe_key=f"key-{number}") for number in range(1100)]

        stored = self.store.insert(jobs)

        assert [each.job.pk for each in stored] == [job.pk for job in jobs]
        assert Job.objects.using(self.store.alias).count() == 1100

    def test_finished_id_may_come_again(self) -> None:
        """A later job under an id that is over is a new job, and the old row makes room: one place for each id."""
        job_id = new_id()
        self.enqueue(job_id)
        self.complete(self.claim_one())

        assert not self.insert(job_id).duplicate
        assert self.places(job_id) == ["live"]

    def test_dead_id_comes_again_with_all_attempts(self) -> None:
        """A new job under the id of a dead letter must not die of attempts that another has used."""
        job_id = new_id()
        self.enqueue(job_id, attempts=4, max_attempts=5)
        self.bury(self.claim_one())

        assert not self.insert(job_id, max_attempts=5).duplicate
        assert self.places(job_id) == ["live"]
        assert self.claim_one().attempts == 1

    def test_clash_by_key_does_not_cost_the_given_ids_old_row(self) -> None:
        """A dead letter makes room for a new job of its id only when there is one."""
        job_id = new_id()
        self.enqueue(job_id)
        self.bury(self.claim_one())
        holder = self.enqueue(dedupe_key="order-1")

        again = self.insert(job_id, dedupe_key="order-1")

        assert (again.job.pk, again.duplicate) == (holder.pk, True)
        assert self.places(job_id) == ["dead"]

    def test_key_is_free_when_its_job_is_over(self) -> None:
        """A key covers live jobs: success ends its hold, and so does death."""
        self.enqueue(dedupe_key="order-1")
        self.complete(self.claim_one())
        assert not self.insert(dedupe_key="order-1").duplicate

        self.bury(self.claim_one())
        assert not self.insert(dedupe_key="order-1").duplicate

    def test_key_is_held_between_attempts(self) -> None:
        """A job that waits for its next attempt is live."""
        self.enqueue(dedupe_key="order-1")
        self.fail_job(self.claim_one())

        assert self.insert(dedupe_key="order-1").duplicate

    def test_key_until_start_is_free_once_claimed(self) -> None:
        """What happens while the job runs needs a run of its own, and until then only one."""
        self.enqueue(dedupe_key="index", dedupe_until_start=True)
        self.claim_one()

        assert not self.insert(dedupe_key="index", dedupe_until_start=True).duplicate
        assert self.insert(dedupe_key="index", dedupe_until_start=True).duplicate

    def test_key_until_start_is_held_again_by_a_job_that_waits_again(self) -> None:
        """A job that failed or was given back has not begun, as far as new events are concerned."""
        self.enqueue(dedupe_key="index", dedupe_until_start=True)

        for give_back in (self.fail_job, self.release):
            give_back(self.claim_one())
            assert self.insert(dedupe_key="index", dedupe_until_start=True).duplicate

    def test_key_until_start_that_was_taken_meanwhile_stays_taken(self) -> None:
        """The job that comes back goes on without it, however it comes back, and no statement fails over it."""
        for come_back in (self.fail_job, self.release, self.lapse):
            first = self.enqueue(dedupe_key="index", dedupe_until_start=True)
            claimed = self.claim_one()
            second = self.enqueue(dedupe_key="index", dedupe_until_start=True)

            come_back(claimed)

            assert self.places(first.pk) == self.places(second.pk) == ["live"]
            assert self.insert(dedupe_key="index", dedupe_until_start=True).job.pk == second.pk
            while jobs := self.claim():
                self.complete(*jobs)
