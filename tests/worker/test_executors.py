"""The slots: real threads and a real event loop, with the board between them and the test."""

from __future__ import annotations

import threading

import pytest
from django.db import connections
from django.utils import timezone, translation

from django_workqueue.domain.outcomes import Succeeded
from django_workqueue.domain.states import FailureKind
from django_workqueue.store import store_for
from django_workqueue.worker.board import Board
from django_workqueue.worker.executors import EventLoop, Executor
from django_workqueue.worker.supervision import Supervision
from tests import samples, traces

from .jobs import job, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Slots:
    """Executors on a board, for jobs that no table holds."""

    def __init__(self, count: int) -> None:
        self.crashes: list[str] = []
        self.board = Board(count, may_start=lambda _one: True, wake=lambda: None)
        self.loop = EventLoop(self.crash)
        self.recycled: list[str] = []
        self.supervision = Supervision(self.board, self.recycled.append, self.crash)
        self.executors = [
            Executor(
                number,
                board=self.board,
                loop=self.loop,
                store=store_for(),
                worker="web1:4",
                supervision=self.supervision,
                on_crash=self.crash,
            )
            for number in range(count)
        ]
        for thread in (self.loop, *self.executors):
            thread.start()

    def crash(self) -> None:
        """Note that a thread died."""
        self.crashes.append(threading.current_thread().name)

    def run(self, *jobs):
        """Run jobs and return their outcomes by id."""
        self.board.put(jobs)
        outcomes = {}

        def all_there():
            outcomes.update((each.job.id, each.outcome) for each in self.board.outcomes())
            return len(outcomes) == len(jobs)

        wait_until(all_there, "every job has an outcome")
        return [outcomes[each.id] for each in jobs]

    def end(self) -> None:
        """Let all threads end."""
        self.supervision.watchdog.end()
        self.board.close()
        for executor in self.executors:
            executor.join(30)
        self.loop.stop()
        self.loop.join(30)


@pytest.fixture
def slots():
    """Return two slots."""
    made = Slots(2)
    yield made
    made.end()
    assert not any(thread.is_alive() for thread in (made.loop, *made.executors))


@pytest.fixture
def slot():
    """Return one slot, so that one job follows the other in the same thread."""
    made = Slots(1)
    yield made
    made.end()


def job_of(task, *args, **columns):
    """Return a claimed job of ``task``."""
    text = "[" + ",".join(f'"{each}"' if isinstance(each, str) else str(each) for each in args) + "]"
    return job(task=task.module_path, args=text, **columns)


def test_functions_run_in_threads_of_their_own(slots):
    """And coroutines in the loop's."""
    plain, coroutine = slots.run(job_of(samples.return_thread), job_of(traces.async_thread))

    assert plain.result.startswith('"workqueue-executor-')
    assert coroutine.result == '"workqueue-event-loop"'


def test_jobs_of_all_kinds_come_back(slots):
    """Many at once, each with its own outcome."""
    jobs = [job_of(samples.add, number, 1) for number in range(100)]
    jobs += [job_of(samples.add_async, number, 1) for number in range(100)]

    results = [outcome.result for outcome in slots.run(*jobs)]

    assert results == [str(number + 1) for number in range(100)] * 2


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (job_of(samples.fail), FailureKind.ERROR),
        (job_of(samples.fail_by, "exit"), FailureKind.ERROR),
        (job_of(samples.fail_by, "interrupt"), FailureKind.ERROR),
        (job_of(samples.cancel_itself), FailureKind.ERROR),
        (job_of(traces.cancel_own_task), FailureKind.ERROR),
        (job_of(traces.exit_in_the_loop), FailureKind.ERROR),
        (job(task="no.such.task"), FailureKind.UNKNOWN_TASK),
        (job(args="{broken"), FailureKind.UNDECODABLE),
        (job(args="[1]"), FailureKind.ERROR),
    ],
    ids=["raise", "exit", "interrupt", "cancelled", "cancel", "exit in loop", "unknown", "undecodable", "misfit"],
)
def test_nothing_that_a_job_does_ends_its_slot(slot, one, kind):
    """The next job runs as if nothing had been."""
    failed, after, later = slot.run(one, job_of(samples.add, 1, 2), job_of(samples.add_async, 1, 2))

    assert failed.kind == kind
    assert (after.result, later.result) == ("3", "3")
    assert slot.crashes == []


@pytest.mark.parametrize("where", ["prepare", "run"])
def test_error_around_a_job_fails_that_job(slot, monkeypatch, where):
    """Of ours, or of a receiver."""
    real = getattr(__import__("django_workqueue.worker.executors", fromlist=[where]), where)

    def flaky(*args, **options):
        monkeypatch.setattr(f"django_workqueue.worker.executors.{where}", real)
        raise RuntimeError("a bug")

    monkeypatch.setattr(f"django_workqueue.worker.executors.{where}", flaky)
    failed, after = slot.run(job_of(samples.add, 1, 2), job_of(samples.add, 1, 2))

    assert (failed.kind, failed.message) == (FailureKind.ERROR, "a bug")
    assert isinstance(after, Succeeded)


@pytest.mark.parametrize("look", [traces.look_around, traces.look_around_async])
@pytest.mark.parametrize("dirty", [traces.leave_language, traces.leave_context, traces.leave_async_context])
def test_nothing_of_one_job_is_left_for_the_next(slot, dirty, look):
    """Language, time zone and context variables end with it."""
    _, after = slot.run(job_of(dirty), job_of(look))

    expected = f'["{translation.get_language()}","{timezone.get_current_timezone_name()}",null]'
    assert after.result == expected


@pytest.mark.parametrize("dirty", [traces.leave_transaction, traces.leave_async_transaction])
def test_open_transaction_is_not_entered_by_the_next_job(slot, dirty):
    """Nor is it committed with it."""
    for _ in range(2):
        _, after = slot.run(job_of(dirty), job_of(traces.in_transaction))
        assert after.result == "false"


def test_connections_of_a_slot_persist_across_jobs(slot):
    """A connection for each job would be slower than the job."""
    first, second = slot.run(job_of(traces.connection_id), job_of(traces.connection_id))

    assert first.result == second.result


def test_coroutines_of_one_slot_follow_each_other(slot):
    """A coroutine takes a slot as a function does."""
    outcomes = slot.run(*[job_of(traces.overlap) for _ in range(5)])

    assert {outcome.result for outcome in outcomes} == {"1"}


def test_coroutines_of_two_slots_overlap(slots):
    """They wait for each other here."""
    outcomes = slots.run(job_of(traces.meet), job_of(traces.meet))

    assert [outcome.result for outcome in outcomes] == ['"met"', '"met"']


def test_ended_slots_leave_no_connection():
    """Their threads close what they opened."""
    made = Slots(2)
    made.run(*[job_of(traces.connection_id) for _ in range(4)])
    made.end()

    assert len(connections.all(initialized_only=True)) <= 1
    assert made.crashes == []
