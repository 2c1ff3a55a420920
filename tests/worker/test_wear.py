"""When a process is worn: what it was asked to watch, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.models import FinishedJob, Job
from django_workqueue.worker import wear as module
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.wear import Wear
from tests.factories import JobFactory

from .bench import Bench

HOUR = timedelta(hours=1)


def wear(*, supervised: bool = True, **options) -> Wear | None:
    """Return what watches a worker with these options."""
    return Wear.of(WorkerOptions(**options), supervised=supervised)


def test_nothing_is_watched_that_was_not_asked_for():
    """And --max-jobs of a worker by itself is the dispatcher's own affair."""
    assert wear() is None
    assert wear(supervised=False, max_jobs=10) is None


@pytest.mark.parametrize(("most", "worn_at"), [(1, 1), (2, 1), (10, 9), (1000, 900)])
def test_supervisor_is_told_before_the_last_jobs(most, worn_at):
    """So that the successor starts meanwhile."""
    watch = wear(max_jobs=most)

    assert watch.reason(worn_at - 1, 0) == ""
    assert watch.reason(worn_at, 0) == f"it has had {worn_at} jobs"


def test_lifetimes_differ_and_are_never_longer(monkeypatch):
    """Processes that were started together are not replaced together."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    watches = [wear(max_lifetime=HOUR) for _ in range(50)]

    now[0] += 3600 * 0.8 - 1
    assert {watch.reason(0, 0) for watch in watches} == {""}
    now[0] += 3600 * 0.1
    assert {watch.reason(0, 0) for watch in watches} == {"", "its lifetime is over"}
    now[0] += 3600 * 0.1 + 1
    assert {watch.reason(0, 0) for watch in watches} == {"its lifetime is over"}


def test_memory_is_looked_at_when_a_job_has_ended(monkeypatch):
    """At most once a second."""
    now, used = [1000.0], [2**20]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "memory_bytes", lambda: used[0])
    watch = wear(max_memory=500 * 2**20)
    used[0] = 2**30

    assert watch.reason(1, 0) == ""
    assert watch.reason(1, 1) == "it holds 1024 MB of memory"
    assert watch.reason(2, 2) == ""
    now[0] += 1
    used[0] = 2**20
    assert watch.reason(2, 2) == ""
    used[0] = 2**30
    now[0] += 1
    assert watch.reason(2, 2) == ""
    assert watch.reason(3, 3) != ""


@pytest.mark.parametrize(
    ("used", "words"), [(0, "cannot be watched"), (2**30, "is 500 MB, and the worker holds 1024 MB")]
)
def test_memory_that_cannot_be_kept_is_refused(monkeypatch, used, words):
    """Instead of a process that is replaced after every job, or never."""
    monkeypatch.setattr(module, "memory_bytes", lambda: used)

    with pytest.raises(ValueError, match=words):
        wear(max_memory=500 * 2**20)


@pytest.mark.django_db
def test_retired_worker_claims_no_more_and_ends_what_it_has(store):
    """However long that takes: nothing is interrupted for the sake of memory."""
    JobFactory.create_batch(3)
    bench = Bench(concurrency=1)
    bench.round()
    [job] = bench.start()
    bench.dispatcher.retire()
    bench.round()
    assert not bench.dispatcher._is_done()

    bench.finish(job)
    bench.round()

    assert bench.dispatcher._is_done()
    assert (FinishedJob.objects.count(), Job.objects.ready().count()) == (1, 2)
