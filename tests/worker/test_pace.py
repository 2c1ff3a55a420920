"""How much to claim: what can be started now, and a little ahead when jobs are short."""

from __future__ import annotations

import pytest

from django_workqueue.worker.pace import AHEAD_SECONDS, BATCH, MOST_AHEAD, Pace


def paced(slots: int, *seconds: float) -> Pace:
    """Return the pace after jobs that ran so long."""
    pace = Pace(slots)
    for each in seconds:
        pace.ran(each)
    return pace


def test_unknown_jobs_are_claimed_one_for_each_free_slot():
    """Nothing is hoarded before anything is known (celery/celery#6500)."""
    assert paced(4).claims(free=4, waiting=0) == [1, 1, 1, 1]
    assert paced(4).claims(free=0, waiting=0) == []


def test_slow_jobs_get_a_lease_each():
    """One that kills its worker lapses alone."""
    assert paced(4, 5.0).claims(free=2, waiting=0) == [1, 1]
    assert paced(4, AHEAD_SECONDS).ahead == 0


@pytest.mark.parametrize(("seconds", "ahead"), [(0.05, 8), (0.01, 40), (0.001, 400), (0.0, MOST_AHEAD)])
def test_short_jobs_are_claimed_ahead_for_a_tenth_of_a_second(seconds, ahead):
    """Of each slot."""
    assert paced(4, seconds).ahead == pytest.approx(ahead, abs=1)


def test_claims_of_short_jobs_stay_large():
    """One is made when half of what waited has gone, or a slot is free."""
    pace = paced(4, 0.01)

    assert pace.claims(free=0, waiting=30) == []
    assert pace.claims(free=0, waiting=20) == [20]
    assert pace.claims(free=4, waiting=0) == [44]
    assert pace.claims(free=1, waiting=30) == [11]


def test_one_claim_is_bounded():
    """However short the jobs."""
    assert paced(32, 0.0).claims(free=32, waiting=0) == [BATCH]


def test_average_follows_slowly():
    """A slow job among fast ones does not turn the pace over, a change of work does."""
    pace = paced(4, *[0.001] * 20)
    pace.ran(0.5)
    assert pace.ahead > 0
    for _ in range(20):
        pace.ran(0.5)

    assert pace.ahead == 0


def test_misjudged_pace_begins_anew():
    """Claimed jobs waited too long for a slot."""
    pace = paced(4, 0.001)
    pace.misjudged()

    assert pace.claims(free=2, waiting=0) == [1, 1]


def test_little_work_is_worth_one_executor_and_much_is_worth_more():
    """Threads that only compute take turns; work that takes time needs its slots."""
    assert paced(8, 0.00001).executors(200) == 1
    assert paced(8, 0.05).executors(8) > 8
    assert paced(8).executors(3) == 3
