"""Statistics: what a queue says of itself, from bounded reads."""

from __future__ import annotations

from datetime import timedelta

from ...domain.outcomes import Retry
from ...domain.states import PauseKind
from ...models import Worker
from ...store.watch import Beat, QueueCounts, QueueStats
from .base import OTHER_QUEUE, QUEUE, ConformanceBase


class StatisticsConformance(ConformanceBase):
    """Guarantees of ``stats``, of the counters and of the workers' rows."""

    def test_empty_queue_has_no_depth_and_no_age(self) -> None:
        """Zero, and not the age of something that is gone."""
        self.enqueue()
        self.complete(self.claim_one())
        self.store.add_counts({QUEUE: QueueCounts(done=1)})

        stats = self._stats(QUEUE)

        assert (stats.ready, stats.scheduled, stats.leased, stats.depth) == (0, 0, 0, 0)
        assert stats.oldest_age_seconds == 0.0

    def test_depth_is_what_waits(self) -> None:
        """What a worker holds is counted by itself."""
        self.enqueue_many(2)
        self.claim_one()

        stats = self._stats(QUEUE)

        assert (stats.ready, stats.leased, stats.depth) == (1, 1, 1)

    def test_job_between_attempts_waits_too(self) -> None:
        """A queue whose jobs all back off is not empty."""
        self.enqueue()
        self.fail_job(self.claim_one(), Retry(timedelta(hours=1)))

        stats = self._stats(QUEUE)

        assert (stats.ready, stats.scheduled, stats.depth) == (0, 1, 1)

    def test_age_is_that_of_the_oldest_ready_job(self) -> None:
        """Over all lanes and priorities: an urgent young job must not hide an old one."""
        self.enqueue(tenant="zeta", priority=-5)
        self.advance(100)
        self.enqueue(tenant="acme", priority=5)

        assert 99 < self._stats(QUEUE).oldest_age_seconds < 110

    def test_queues_are_counted_apart(self) -> None:
        """Each by its own name, also where jobs are dead."""
        self.enqueue(queue=OTHER_QUEUE)
        self.enqueue_many(2)
        self.bury(self.claim_one())

        ours, other = self._stats(QUEUE), self._stats(OTHER_QUEUE)

        assert (ours.ready, ours.dead) == (1, 1)
        assert (other.ready, other.dead) == (1, 0)

    def test_counters_accumulate(self) -> None:
        """They only grow, from any number of workers."""
        self.store.add_counts({QUEUE: QueueCounts(done=2, failed=1)})
        self.store.add_counts({QUEUE: QueueCounts(done=3, dead=1, reaped=4), OTHER_QUEUE: QueueCounts(done=9)})
        self.store.add_counts({QUEUE: QueueCounts(duplicates=5)})

        stats = self._stats(QUEUE)

        assert (stats.done, stats.failed, stats.died, stats.reaped, stats.duplicates) == (5, 1, 1, 4, 5)

    def test_pause_is_shown(self) -> None:
        """Work that waits since somebody stopped the queue is no alarm about workers."""
        self.enqueue()
        assert self._stats(QUEUE).unserved

        self.store.pause(PauseKind.QUEUE, QUEUE, "olga")

        assert self._stats(QUEUE).paused
        assert not self._stats(QUEUE).unserved

    def test_worker_is_live_while_it_beats(self) -> None:
        """And is not any more once it is silent for too long, or has retired."""
        silence = timedelta(seconds=30)
        self.store.register_worker(self._worker("worker-1"))
        self.advance(29)
        assert [worker.id for worker in self.store.live_workers(silence)] == ["worker-1"]

        self.advance(2)
        assert self.store.live_workers(silence) == []

        assert self.store.beat_worker("worker-1", Beat("running", 0, 1, 2, 3))
        assert [worker.queues for worker in self.store.live_workers(silence)] == ["*"]

        self.store.retire_worker("worker-1")
        assert self.store.live_workers(silence) == []
        assert not self.store.beat_worker("worker-1", Beat("running", 0, 0, 0, 0))

    def test_name_belongs_to_one_worker(self) -> None:
        """Until its row is replaced as that of a dead one, or goes on under its id."""
        first, second = self._worker("worker-1", name="shop"), self._worker("worker-2", name="shop")
        assert self.store.register_worker(first)
        assert not self.store.register_worker(second)
        assert self._name_holder("shop") == "worker-1"

        assert self.store.register_worker(second, replacing=[first])
        assert self._name_holder("shop") == "worker-2"
        assert not self.store.beat_worker("worker-1", Beat("running", 0, 0, 0, 0))

        assert self.store.register_worker(first, renaming=["worker-2"])
        assert self._name_holder("shop") == "worker-1"
        assert self.store.beat_worker("worker-2", Beat("running", 0, 0, 0, 0))

    def test_worker_that_was_seen_again_is_not_replaced(self) -> None:
        """It was thought dead, and beats before its successor is registered."""
        self.store.register_worker(self._worker("worker-1", name="shop"))
        found = self.store.namesake("shop")
        assert found is not None
        self.advance(60)
        self.store.beat_worker("worker-1", Beat("running", 0, 0, 0, 0))

        assert not self.store.register_worker(self._worker("worker-2", name="shop"), replacing=[found[0]])
        assert self._name_holder("shop") == "worker-1"
        assert self.store.namesake("other") is None

    def test_worker_is_told_at_its_beat_what_is_wanted_of_it(self) -> None:
        """And nothing takes a stop back: it may have heard that already."""
        beat = Beat("running", 0, 0, 0, 0)
        self.store.register_worker(self._worker("worker-1"))
        assert self.store.beat_worker("worker-1", beat) == "work"

        assert self.store.ask_worker("worker-1", "quiet", by="olga")
        assert self.store.beat_worker("worker-1", beat) == "quiet"
        assert self.store.ask_worker("worker-1", "stop", by="olga")
        assert not self.store.ask_worker("worker-1", "work", by="vera")
        assert self.store.beat_worker("worker-1", beat) == "stop"

        assert not self.store.ask_worker("worker-2", "quiet", by="olga")
        assert self.store.beat_worker("worker-2", beat) is None

    def test_quiet_worker_serves_no_queue(self) -> None:
        """It lives, but whoever counts on it for the work that waits would wait in vain."""
        self.store.register_worker(self._worker("worker-1"))
        self.store.beat_worker("worker-1", Beat("quiet", 0, 0, 0, 0))

        assert self.store.live_workers(timedelta(seconds=30)) == []

    def test_forgotten_worker_gives_up_its_leases_at_once(self) -> None:
        """Its jobs come back with their attempts counted, and what it still does for them is refused."""
        self.enqueue()
        job = self.claim_one("worker-1", lease=600)
        self.store.register_worker(self._worker("worker-1"))
        silence = timedelta(seconds=30)
        assert not self.store.forget_worker("worker-1", silence)
        assert self.reap() == []

        self.advance(31)
        assert self.store.forget_worker("worker-1", silence)
        assert self.store.beat_worker("worker-1", Beat("running", 0, 0, 0, 0)) is None
        assert [(each.job_id, each.attempts) for each in self.reap()] == [(job.id, 1)]
        assert not self.store.forget_worker("worker-1", silence)

    def _name_holder(self, name: str) -> str:
        found = self.store.namesake(name)
        return "" if found is None else found[0].pk

    def _stats(self, queue: str) -> QueueStats:
        [stats] = [each for each in self.store.stats(lambda _name: 0) if each.queue == queue]
        return stats

    def _worker(self, worker_id: str, name: str = "w") -> Worker:
        return Worker(id=worker_id, name=name, host="h", pid=1, queues="*", slots=8, versions="1")
