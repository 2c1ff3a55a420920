"""When a failed job runs again: doubling, bounded, spread, and the same in every process."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_workqueue.domain.policies import BackoffPolicy, exhausted, reclaim_delay

JOB = uuid.UUID(int=7)
EXACT = BackoffPolicy(jitter=0)


def seconds(delays) -> list[float]:
    """Return delays in seconds."""
    return [delay.total_seconds() for delay in delays]


def test_defaults_are_the_documented_ones():
    """A second, ten minutes, a tenth."""
    assert BackoffPolicy() == BackoffPolicy(base=timedelta(seconds=1), cap=timedelta(minutes=10), jitter=0.1)


def test_delays_double_up_to_the_cap():
    """Without jitter the series is exact."""
    delays = [EXACT.delay(attempt, JOB) for attempt in range(1, 13)]

    assert seconds(delays) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]


@pytest.mark.parametrize("attempt", [0, -1, -1000])
def test_no_failure_is_no_delay(attempt):
    """Nothing to wait for."""
    assert EXACT.exact(attempt) == timedelta()


@pytest.mark.parametrize("attempt", [61, 1100, 32767, 10**9])
def test_any_number_of_attempts_is_the_cap(attempt):
    """Doubling must not overflow."""
    assert EXACT.exact(attempt) == timedelta(minutes=10)
    assert BackoffPolicy(base=timedelta(days=365)).exact(attempt) == timedelta(minutes=10)


def test_base_of_zero_never_waits():
    """A project may want its retries at once."""
    assert BackoffPolicy(base=timedelta()).delay(1000, JOB) == timedelta()


@given(st.uuids(), st.integers(1, 40000), st.floats(0, 1))
@settings(deadline=None, database=None, derandomize=True)
def test_jitter_only_takes_off_and_stays_in_its_share(job_id, attempt, jitter):
    """The cap is never exceeded, as it was elsewhere by adding (10.998 over 10)."""
    policy = BackoffPolicy(jitter=jitter)

    delay, exact = policy.delay(attempt, job_id), policy.exact(attempt)

    assert exact * (1 - jitter) - timedelta(microseconds=1) <= delay <= exact <= policy.cap


def test_jobs_that_failed_together_come_back_apart():
    """Spread over the whole share, so that a broken dependency is not hit by all at once."""
    policy = BackoffPolicy(base=timedelta(seconds=100))
    delays = seconds(policy.delay(1, uuid.uuid5(JOB, str(number))) for number in range(1000))

    assert len(set(delays)) == 1000
    assert min(delays) < 91
    assert max(delays) > 99
    assert 94.5 < sum(delays) / 1000 < 95.5


def test_delay_of_one_job_is_reproducible():
    """A test, or another process, finds the same."""
    assert seconds([BackoffPolicy().delay(attempt, JOB) for attempt in (1, 2, 3)]) == pytest.approx(
        [0.902949, 1.957393, 3.803867], abs=2
    )
    assert BackoffPolicy().delay(3, JOB) == BackoffPolicy().delay(3, uuid.UUID(int=7))
    assert BackoffPolicy().delay(1, JOB) * 2 != BackoffPolicy().delay(2, JOB)


def test_first_lapse_is_prompt_and_the_next_ones_back_off():
    """A deploy is no fault of the job; a second lapse in a row may be."""
    assert seconds(reclaim_delay(EXACT, lapses, JOB) for lapses in (1, 2, 3, 4)) == [0, 1, 2, 4]


@pytest.mark.parametrize(("attempts", "most", "over"), [(1, 1, True), (1, 2, False), (2, 2, True), (6, 5, True)])
def test_attempts_are_used_up_at_the_last_one(attempts, most, over):
    """And beyond it, where the number was lowered meanwhile."""
    assert exhausted(attempts, most) is over
