"""Maintenance: what every worker does for the whole queue, each chore for itself."""

from __future__ import annotations

import logging
import time

import pytest
from django.db import OperationalError

from django_workqueue.domain.states import JobState
from django_workqueue.models import Failure, FinishedJob, Job, Lease, Queue, QueueMinute
from django_workqueue.store import store_for
from django_workqueue.worker import maintenance as module
from django_workqueue.worker.lanes import News
from django_workqueue.worker.maintenance import Maintenance
from django_workqueue.worker.shutdown import StopRequest
from django_workqueue.worker.tally import Tally
from tests.claims import claim_one
from tests.factories import FinishedJobFactory, JobFactory, ScheduleFactory, ago

from .jobs import done, job, running, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Janitor:
    """Maintenance with its surroundings."""

    def __init__(self) -> None:
        self.news, self.tally, self.ended = News(), Tally("w"), StopRequest()
        self.wakes, self.crashes = [], []
        self.store = store_for()
        self.store.prepare()
        self.thread = Maintenance(
            store=self.store,
            tally=self.tally,
            news=self.news,
            wake=lambda: self.wakes.append(1),
            poll_seconds=0.05,
            ended=self.ended,
            on_crash=lambda: self.crashes.append(1),
        )


@pytest.fixture
def janitor() -> Janitor:
    """Return maintenance that has not started."""
    return Janitor()


# -- promote -----------------------------------------------------------------------------------------------------------


def test_due_jobs_become_ready_and_the_dispatcher_hears_of_it(janitor):
    """Their lanes are among the news, and it looks again at once for more."""
    JobFactory(state=JobState.SCHEDULED, ready_at=ago(seconds=1), tenant="acme")

    assert janitor.thread._promote() == 0.0

    assert Job.objects.get().state == JobState.READY
    assert list(janitor.news.returned) == [("default", "acme")]
    assert janitor.wakes


def test_next_look_is_when_the_next_job_is_due(janitor, monkeypatch):
    """At most a second later, as others may enqueue with a shorter delay."""
    assert janitor.thread._promote() == module.PROMOTE_SECONDS
    JobFactory(scheduled=True)
    assert janitor.thread._promote() == module.PROMOTE_SECONDS
    monkeypatch.setattr(module, "PROMOTE_SECONDS", 10_000.0)

    assert 3000 < janitor.thread._promote() <= 3600


# -- blocked and parked jobs -------------------------------------------------------------------------------------------


def test_missed_slot_is_given_away_and_the_dispatcher_hears_of_it(janitor):
    """Whoever freed it may have been killed before it asked for admission. Without such jobs a look is seldom."""
    assert janitor.thread._let_go() == module.WITHHELD_SECONDS
    JobFactory.create_batch(2, state=JobState.BLOCKED, concurrency_key="k", concurrency_limit=1, tenant="acme")

    assert janitor.thread._let_go() == module.PROMOTE_SECONDS

    assert sorted(Job.objects.values_list("state", flat=True)) == ["blocked", "ready"]
    assert list(janitor.news.returned) == [("default", "acme")]
    assert janitor.wakes == [1]
    assert janitor.thread._let_go() == module.PROMOTE_SECONDS
    assert janitor.wakes == [1]


# -- schedules ---------------------------------------------------------------------------------------------------------


def test_due_schedules_fire_and_the_dispatcher_hears_of_it(janitor):
    """Their lanes are among the news, and it looks again at once for more."""
    ScheduleFactory(due=True, tenant="acme")

    assert janitor.thread._fire() == 0.0

    assert Job.objects.get().state == JobState.READY
    assert list(janitor.news.returned) == [("default", "acme")]
    assert janitor.wakes


# -- reap --------------------------------------------------------------------------------------------------------------


def test_lapsed_work_is_put_back_and_the_dispatcher_hears_of_it(janitor, settings):
    """Reaping needs no job, queue or slot (procrastinate-org/procrastinate#1408)."""
    settings.WORKQUEUE = {"REAP_INTERVAL": 3}
    JobFactory()
    claim_one(janitor.store)
    janitor.store.shift(31)

    assert janitor.thread._reap() == 0.0
    assert janitor.thread._reap() == 3.0
    assert list(janitor.news.returned) == [("default", "")]
    assert Queue.objects.get().reaped == 1


def test_reaping_is_put_off_while_a_look_finds_nothing_lapsed(janitor, settings):
    """The look is there anyway, and a transaction that finds nothing is three statements more."""
    settings.WORKQUEUE = {"REAP_INTERVAL": 60}
    janitor.thread._promote()
    assert janitor.thread._reaping.due > time.monotonic() + 30
    JobFactory()
    claim_one(janitor.store)
    janitor.store.shift(31)

    janitor.thread._reaping.due = due = time.monotonic()
    janitor.thread._promote()
    assert janitor.thread._reaping.due == due


def test_orphans_are_rescued_and_told(janitor, caplog):
    """Somebody deleted a lease by hand."""
    JobFactory()
    claim_one(janitor.store)
    Lease.objects.all().delete()

    with caplog.at_level(logging.WARNING):
        assert janitor.thread._rescue() == 0.0
    assert janitor.thread._rescue() == module.SWEEP_SECONDS
    assert "lease was gone" in caplog.text


# -- statistics --------------------------------------------------------------------------------------------------------


def test_counts_and_rollups_are_written(janitor):
    """And only once."""
    janitor.tally.add_done([done(job()), done(job())])
    janitor.thread._flush()
    janitor.thread._flush()

    assert Queue.objects.get(pk="default").done == 2
    assert QueueMinute.objects.get().done == 2


def test_counts_that_could_not_be_written_are_kept(janitor, monkeypatch):
    """For the next time."""
    janitor.tally.add_done([done(job())])

    def away(_counts):
        raise OperationalError("connection refused")

    monkeypatch.setattr(janitor.store, "add_counts", away)
    with pytest.raises(OperationalError):
        janitor.thread._flush()
    monkeypatch.undo()
    janitor.thread._flush()

    assert Queue.objects.get(pk="default").done == 1


def test_rollups_that_could_not_be_written_are_kept(janitor, monkeypatch):
    """The counters were added to already, and are not added to twice."""
    janitor.tally.add_done([done(job())])

    def away(_minutes):
        raise OperationalError("connection refused")

    monkeypatch.setattr(janitor.store, "write_minutes", away)
    with pytest.raises(OperationalError):
        janitor.thread._flush()
    monkeypatch.undo()
    janitor.thread._flush()

    assert Queue.objects.get(pk="default").done == QueueMinute.objects.get().done == 1


# -- prune -------------------------------------------------------------------------------------------------------------


def test_old_rows_go_in_batches(janitor, monkeypatch):
    """Soon again while there is more (bensheldon/good_job#933)."""
    monkeypatch.setattr(module, "PRUNE_BATCH", 2)
    FinishedJobFactory.create_batch(3, expires_at=ago(seconds=1))

    assert [janitor.thread._prune() for _ in range(2)] == [0.1, module.SWEEP_SECONDS]
    assert not FinishedJob.objects.exists()


# -- the loop ----------------------------------------------------------------------------------------------------------


def test_all_chores_are_done_at_the_start(janitor):
    """A worker that starts after an outage finds much to do."""
    JobFactory(state=JobState.SCHEDULED, ready_at=ago(seconds=1))
    FinishedJobFactory(expires_at=ago(seconds=1))
    JobFactory(lapsed=True)
    with running(janitor.thread, janitor.ended.request):
        wait_until(lambda: Job.objects.ready().count() == 2, "promoted and reaped")
        wait_until(lambda: not FinishedJob.objects.exists(), "pruned")

    assert Failure.objects.count() == 1
    assert janitor.crashes == []


@pytest.mark.parametrize("error", [OperationalError("deadlock detected"), ZeroDivisionError("a bug")])
def test_chore_that_fails_does_not_stop_the_others(janitor, monkeypatch, caplog, error):
    """Nor itself for good."""
    FinishedJobFactory(expires_at=ago(seconds=1))
    JobFactory(state=JobState.SCHEDULED, ready_at=ago(seconds=1))
    real, calls = janitor.store.promote, []

    def flaky(**options):
        calls.append(1)
        if len(calls) == 1:
            raise error
        return real(**options)

    monkeypatch.setattr(janitor.store, "promote", flaky)
    with caplog.at_level(logging.WARNING), running(janitor.thread, janitor.ended.request):
        wait_until(lambda: not FinishedJob.objects.exists(), "pruned")
        wait_until(Job.objects.ready().exists, "promoted at last")

    assert "Could not promote due jobs" in caplog.text
    assert janitor.crashes == []


def test_last_counts_are_written_at_the_end(janitor):
    """What was done in the last seconds counts too."""
    with running(janitor.thread, janitor.ended.request):
        (flush,) = [chore for chore in janitor.thread._chores if chore.name == "write statistics"]
        wait_until(lambda: flush.due > 0, "the first flush is over")
        janitor.tally.add_done([done(job())])

    assert Queue.objects.get(pk="default").done == 1


def test_end_without_a_database_is_no_crash(janitor, monkeypatch, caplog):
    """The counts are lost, which is told."""
    with caplog.at_level(logging.WARNING), running(janitor.thread, janitor.ended.request):
        wait_until(lambda: all(chore.due > 0 for chore in janitor.thread._chores), "the first round is over")
        monkeypatch.setattr(janitor.store, "prepare", lambda: 1 / 0)

    assert "could not be written" in caplog.text
    assert janitor.crashes == []
