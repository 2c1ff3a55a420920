"""The board: jobs wait for a slot, run, and leave their outcomes; what has not started can be taken back."""

from __future__ import annotations

import threading

import pytest

from django_workqueue.worker.board import FLUSH_SIZE, MOST_AT_ONCE, Board
from tests.racing import flat, race

from .jobs import done, job, running, wait_until


class Wakes:
    """Counts how often the dispatcher was woken."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        """Count."""
        self.count += 1


@pytest.fixture
def wakes() -> Wakes:
    """Return the counter of wakes."""
    return Wakes()


@pytest.fixture
def board(wakes) -> Board:
    """Return a board with two slots."""
    return Board(2, may_start=lambda one: one.lease_id != 99, wake=wakes)


def test_jobs_are_handed_out_in_order(board):
    """The order of the claim is that of the run."""
    desk, jobs = board.open_desk(), [job() for _ in range(5)]
    board.put(jobs)

    assert [desk.take() for _ in range(5)] == jobs


def test_each_job_goes_to_one_desk(board):
    """However many executors reach for them."""
    jobs = [job() for _ in range(200)]
    desks = [board.open_desk() for _ in range(4)]
    board.put(jobs)

    def work(desk):
        taken = []
        while board.waiting:
            if (one := desk.next()) is not None or board.refill(desk):
                taken += [one] if one else []
        return taken

    def stop_at_the_end():
        wait_until(lambda: not board.waiting)
        board.close()
        return []

    taken = flat(race(*[lambda desk=desk: work(desk) for desk in desks], stop_at_the_end))

    assert sorted(one.id for one in taken) == sorted(one.id for one in jobs)


def test_executor_waits_for_a_job(board):
    """Without turning."""
    desk, taken = board.open_desk(), []
    with running(threading.Thread(target=lambda: taken.append(desk.take())), board.close):
        one = job()
        board.put([one])
        wait_until(lambda: taken)

    assert taken == [one]


def test_closed_board_lets_executors_go(board):
    """They end instead of waiting for ever."""
    desk, taken = board.open_desk(), []
    with running(threading.Thread(target=lambda: taken.append(desk.take())), board.close):
        pass

    assert taken == [None]


def test_closed_board_hands_nothing_out(board):
    """What is left is given back."""
    desk = board.open_desk()
    board.put([job()])
    board.close()

    assert desk.take() is None
    assert len(board.unstarted()) == 1


def test_counts_tell_what_waits_and_runs(board):
    """Free slots are those that nothing runs in or waits for."""
    desk = board.open_desk()
    assert (board.free, board.waiting, board.running, board.unsettled) == (2, 0, 0, 0)
    board.put([job(), job(), job()])
    assert (board.free, board.waiting, board.running) == (0, 3, 0)
    one = desk.take()
    assert (board.free, board.waiting, board.running) == (0, 2, 1)
    desk.take(), desk.take()
    desk.finish(done(one))

    assert (board.free, board.waiting, board.running, board.unsettled) == (0, 0, 2, 1)


def test_executor_takes_several_short_jobs_at_once_but_leaves_the_others_theirs(board):
    """A share for each slot."""
    desk = board.open_desk()
    board.put([job() for _ in range(10)])
    desk.take()

    assert len(desk.jobs) == 4
    assert board.waiting == 9


def test_executor_takes_a_bounded_number_at_once(board):
    """Others may come and be faster."""
    desk = board.open_desk()
    board.put([job() for _ in range(1000)])
    desk.take()

    assert len(desk.jobs) == MOST_AT_ONCE - 1


def test_job_whose_lease_cannot_hold_any_more_is_not_started(board):
    """It is put aside, to be given back."""
    desk, stale, fresh = board.open_desk(), job(lease_id=99), job()
    board.put([stale, fresh])

    assert desk.take() == fresh
    assert board.unstarted(older_than=1000) == [stale]


def test_unstarted_jobs_can_be_taken_back(board):
    """From the board and from the desks; what runs stays."""
    desk, jobs = board.open_desk(), [job() for _ in range(8)]
    board.put(jobs)
    desk.take()

    assert {one.id for one in board.unstarted()} == {one.id for one in jobs[1:]}
    assert (board.waiting, board.running) == (0, 1)
    assert board.unstarted() == []


def test_only_what_waited_too_long_is_taken_back(board, monkeypatch):
    """Jobs that were just claimed stay."""
    now = [100.0]
    monkeypatch.setattr("django_workqueue.worker.board.time.monotonic", lambda: now[0])
    old, new = job(), job()
    board.put([old])
    now[0] += 2
    board.put([new])

    assert board.unstarted(older_than=1.0) == [old]
    assert board.waiting == 1


def test_start_of_a_running_job_is_known(board):
    """An interruption tells how long it ran."""
    desk, one = board.open_desk(), job()
    board.put([one])
    assert board.started_at(one) is None
    desk.take()
    assert board.started_at(one) is not None
    desk.finish(done(one))

    assert board.started_at(one) is None


def test_outcomes_are_taken_once(board):
    """By the dispatcher alone."""
    desk, one = board.open_desk(), job()
    board.put([one])
    desk.take()
    desk.finish(done(one))

    assert board.outcomes() == [done(one)]
    assert board.outcomes() == []


def test_dispatcher_is_woken_when_a_slot_is_idle(board, wakes):
    """Nothing waits: the outcome is worth a look at once."""
    desk, one = board.open_desk(), job()
    board.put([one])
    desk.take()
    desk.finish(done(one))

    assert wakes.count == 1


def test_dispatcher_sleeps_while_work_goes_on(board, wakes):
    """Outcomes gather until there are enough for a statement."""
    desk = board.open_desk()
    board.put([job() for _ in range(FLUSH_SIZE + 5)])
    for number in range(FLUSH_SIZE):
        desk.finish(done(desk.take()))
        assert wakes.count == (number == FLUSH_SIZE - 1)


def test_more_executors_are_called_in_when_jobs_take_longer_than_thought(board):
    """Only one was woken for what looked like a moment's work; the first job then blocks it."""
    taken = []
    release = threading.Event()

    def work(desk):
        while (one := desk.take()) is not None:
            taken.append(one)
            release.wait(10)

    threads = [threading.Thread(target=work, args=(board.open_desk(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    board.put([job(), job()], executors=1)
    wait_until(lambda: len(taken) == 1)

    wait_until(lambda: board.call_in() or len(taken) == 2)

    release.set()
    board.close()
    for thread in threads:
        thread.join(10)
