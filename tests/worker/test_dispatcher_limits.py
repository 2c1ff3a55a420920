"""The dispatcher beside limits and pauses: it neither spins nor forgets."""

from __future__ import annotations

import pytest

from django_workqueue.domain.states import JobState
from django_workqueue.lifecycle import operate
from django_workqueue.models import Job
from django_workqueue.worker import lanes
from tests.factories import JobFactory

from .bench import Bench

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Let no queue be asked again for want of time."""
    now = [1000.0]
    monkeypatch.setattr(lanes.time, "monotonic", lambda: now[0])
    return now


def test_settled_job_of_a_key_lets_the_next_one_run(store):
    """In the same round, and down to the last."""
    JobFactory(concurrency_key="k", concurrency_limit=1)
    JobFactory.create_batch(4, state=JobState.BLOCKED, concurrency_key="k", concurrency_limit=1)

    assert Bench().work() == 5


def test_queue_at_its_limit_is_not_asked_until_something_ends(store, settings):
    """Else each round would be a claim in vain, without a pause between them."""
    settings.WORKQUEUE = {"CONCURRENCY": 1}
    JobFactory.create_batch(3)
    bench = Bench()
    bench.round()
    [job] = bench.start()

    bench.round()
    assert (len(bench.dispatcher.lanes), bench.dispatcher.lanes.holds_back) == (0, True)
    assert bench.dispatcher._seconds_to_wait() > 0
    assert not bench.board.waiting

    bench.finish(job)
    bench.round()
    assert len(bench.start()) == 1


def test_burst_waits_for_what_is_held_back(store, settings, patience):
    """Work is left, though this worker may not begin it at this moment."""
    settings.WORKQUEUE = {"RATE": "1/h"}
    JobFactory.create_batch(2)
    bench = Bench(burst=True)
    assert bench.work() == 1
    for _ in range(3):
        bench.dispatcher._walk_at = 0.0
        bench.round()

    assert not bench.dispatcher._is_done()
    bench.store.shift(3601)
    patience[0] += 3601
    assert bench.work() == 1


def test_rates_window_is_waited_for(store, settings):
    """Nothing that happens meanwhile makes another claim worth it."""
    settings.WORKQUEUE = {"RATE": "1/h"}
    JobFactory.create_batch(2)
    bench = Bench()
    bench.work()
    bench.round()
    bench.dispatcher.lanes.news.returned.append(("default", ""))
    bench.round()

    assert len(bench.dispatcher.lanes) == 0
    assert Job.objects.ready().count() == 1


def test_job_of_a_paused_task_is_never_begun(store):
    """It is set aside where it is claimed; those behind it run."""
    JobFactory.create_batch(3, priority=1)
    JobFactory(task="tests.samples.other")
    operate.pause(task="shop.tasks.send_receipt", by="olga")
    bench = Bench()
    for _ in range(5):
        bench.round()

    assert bench.work() == 1
    assert set(Job.objects.values_list("state", "attempts")) == {(JobState.PARKED, 0)}
    assert len(bench.held) == 0
