"""Nothing is lost and nothing is doubled, at any step of any course of events."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from ...domain.outcomes import Bury, ClaimedJob, Retry
from ...domain.rotation import Rotation
from ...domain.states import DeathReason
from ...exceptions import DuplicateJobError
from ...lifecycle.reap import judge
from ...models import DeadLetter, Failure, FinishedJob, Job, Lease
from .base import AT_ONCE, ConformanceBase

STEPS = 120
KEYS = (None, None, "key-1", "key-2")
TENANTS = ("", "acme", "zeta")
WORKERS = ("worker-1", "worker-2", "worker-3")


class ConservationConformance(ConformanceBase):
    """What holds for all verbs together."""

    def test_job_is_in_one_place_at_every_step(self) -> None:
        """Whatever workers, reapers and people do, in any order: live, finished or dead, and never two of them."""
        for seed in range(4):
            course = Course(self, random.Random(seed))  # noqa: S311 - a course of events, no secret
            for step in range(STEPS):
                name = course.go_on()
                assert course.misplaced() == set(), f"seed {seed}, step {step}: {name}"
                assert course.unheld() == [], f"seed {seed}, step {step}: {name}"

    def test_report_that_was_taken_is_never_undone(self) -> None:
        """A job that was reported as done is done once, whoever else held it before."""
        course = Course(self, random.Random(7))  # noqa: S311 - a course of events, no secret
        for _ in range(STEPS):
            course.go_on()

        finished = FinishedJob.objects.using(self.store.alias).values_list("pk", flat=True)
        assert set(course.completed) == set(finished)
        assert len(course.completed) == len(set(course.completed))

    def test_drained_queue_holds_nothing(self) -> None:
        """Six hundred jobs in batches, each handed out once, and no lease left over."""
        accepted = [job.pk for tenant in TENANTS for job in self.enqueue_many(200, tenant=tenant)]
        rotation, handed_out = Rotation(), list[UUID]()

        while jobs := self.take_turn(rotation, limit=50):
            handed_out += [job.id for job in jobs]
            assert self.complete(*jobs)

        assert sorted(handed_out) == sorted(accepted)
        assert not Job.objects.using(self.store.alias).exists()
        assert not Lease.objects.using(self.store.alias).exists()

    def test_failing_jobs_end_as_dead_letters_with_all_their_attempts(self) -> None:
        """A queue in which everything fails empties all the same, and every attempt is on record."""
        accepted = [job.pk for job in self.enqueue_many(5, max_attempts=3)]

        while jobs := self.claim(limit=2):
            for job in jobs:
                spent = job.attempts >= job.max_attempts
                self.fail_job(job, Bury(DeathReason.EXHAUSTED) if spent else AT_ONCE, last=job is jobs[-1])

        assert [self.places(pk) for pk in accepted] == [["dead"]] * 5
        assert Failure.objects.using(self.store.alias).count() == 15


class Course:
    """A random course of events on one store, which remembers what was accepted, held and reported."""

    def __init__(self, suite: ConformanceBase, lots: random.Random) -> None:
        self.accepted: set[UUID] = set()
        self.tenants: dict[UUID, str] = {}
        self.completed: list[UUID] = []
        self._suite = suite
        self._lots = lots
        self._claims: list[ClaimedJob] = []
        self._events: list[Callable[[], object]] = [
            self.enqueue,
            self.enqueue,
            self.enqueue_again,
            self.claim,
            self.claim,
            self.complete,
            self.fail,
            self.bury,
            self.release,
            self.renew,
            self.let_time_pass,
            self.reap,
            self.adopt,
            self.requeue,
            self.discard,
        ]

    def go_on(self) -> str:
        """Let one thing happen, and return what it was."""
        event = self._lots.choice(self._events)
        event()
        return event.__name__

    def misplaced(self) -> set[UUID]:
        """Return the accepted jobs that are nowhere, and all jobs that are in more than one place."""
        alias = self._suite.store.alias
        tables = (Job.objects, FinishedJob.objects, DeadLetter.objects)
        places = Counter(pk for rows in tables for pk in rows.using(alias).values_list("pk", flat=True))
        return {pk for pk in self.accepted | places.keys() if places[pk] != 1}

    def unheld(self) -> list[UUID]:
        """Return the jobs that count as held by nobody: no lease would ever give them back."""
        alias = self._suite.store.alias
        leases = Lease.objects.using(alias).values("pk")
        held = Job.objects.using(alias).filter(lease__isnull=False)
        return list(held.exclude(lease__in=leases).values_list("pk", flat=True))

    # -- events --------------------------------------------------------------------------------------------------

    def enqueue(self) -> None:
        """Accept a job, or a duplicate of one."""
        stored = self._suite.insert(
            tenant=self._lots.choice(TENANTS),
            dedupe_key=self._lots.choice(KEYS),
            dedupe_until_start=self._lots.random() < 0.3,
            max_attempts=self._lots.randint(1, 3),
        )
        self.accepted.add(stored.job.pk)
        self.tenants[stored.job.pk] = stored.job.tenant

    def enqueue_again(self) -> None:
        """Accept a job under an id that was there before, wherever that is now."""
        if self.accepted:
            job_id = self._lots.choice(sorted(self.accepted))
            stored = self._suite.insert(job_id, tenant=self.tenants[job_id], dedupe_key=self._lots.choice(KEYS))
            if not stored.duplicate and job_id in self.completed:
                self.completed.remove(job_id)

    def claim(self) -> None:
        """Claim a few jobs."""
        self._claims += self._suite.claim(self._lots.choice(WORKERS), limit=self._lots.randint(1, 3))

    def complete(self) -> None:
        """Report a success, maybe of a claim that is lost."""
        if (job := self._any_claim()) and self._suite.complete(job, last=self._is_alone(job)):
            self.completed.append(job.id)

    def fail(self) -> None:
        """Report a failure, maybe of a claim that is lost."""
        if job := self._any_claim():
            delay = timedelta(seconds=self._lots.choice((0, 10)))
            self._suite.fail_job(job, Retry(delay), last=self._is_alone(job))

    def bury(self) -> None:
        """Report a failure for good."""
        if job := self._any_claim():
            self._suite.bury(job, last=self._is_alone(job))

    def release(self) -> None:
        """Give back what was not started."""
        if job := self._any_claim():
            self._suite.release(job, last=self._is_alone(job))

    def renew(self) -> None:
        """Beat."""
        if job := self._any_claim():
            self._suite.renew(job)

    def let_time_pass(self) -> None:
        """Let leases lapse at times, and delays end."""
        self._suite.advance(self._lots.choice((1, 20, 40)))
        self._suite.store.promote()

    def reap(self) -> None:
        """Take back what lapsed."""
        self._suite.reap()

    def adopt(self) -> None:
        """Restart a worker."""
        self._suite.store.adopt([self._lots.choice(WORKERS)], judge)

    def requeue(self) -> None:
        """Put a dead letter back, if its key is free."""
        if (letter := self._any_dead_letter()) is not None:
            try:
                self._suite.store.requeue(letter, attempts=2)
            except DuplicateJobError:
                assert self._suite.places(letter) == ["dead"]

    def discard(self) -> None:
        """Decide against a dead letter."""
        if (letter := self._any_dead_letter()) is not None:
            self._suite.store.discard(letter)
            self.accepted.discard(letter)

    def _any_claim(self) -> ClaimedJob | None:
        return self._lots.choice(self._claims) if self._claims else None

    def _is_alone(self, job: ClaimedJob) -> bool:
        alias = self._suite.store.alias
        return not Job.objects.using(alias).filter(lease=job.lease_id).exclude(pk=job.id).exists()

    def _any_dead_letter(self) -> UUID | None:
        ids = list(DeadLetter.objects.using(self._suite.store.alias).order_by("pk").values_list("pk", flat=True))
        return self._lots.choice(ids) if ids else None
