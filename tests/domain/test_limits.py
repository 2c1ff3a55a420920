"""What limits leave, and which paths a pause covers: pure rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_workqueue.domain.limits import Limits, Rate, Window, room, window_at
from django_workqueue.domain.pauses import all_paths

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RATE = Rate(10, timedelta(minutes=1))


@pytest.mark.parametrize(
    ("started", "taken"),
    [
        (None, 0),
        (NOW, 4),
        (NOW - timedelta(seconds=59.9), 4),
        (NOW - timedelta(seconds=60), 0),
        (NOW - timedelta(days=9), 0),
        (NOW + timedelta(seconds=1), 0),
    ],
)
def test_window_holds_for_its_period(started, taken):
    """A new one begins after it, or when the clock was set back: waiting for the future could take for ever."""
    window = window_at(NOW, RATE, started, 4)

    assert window == Window(started if taken else NOW, taken)
    assert window.left(RATE) == 10 - taken
    assert timedelta() < window.ends_in(RATE, NOW) <= RATE.period


def test_window_that_a_lowered_rate_overtook_has_nothing_left():
    """Not less than nothing."""
    assert Window(NOW, 12).left(RATE) == 0


def test_limits_that_bound_nothing_are_none():
    """What decides whether a claim takes a lock."""
    assert not Limits()
    assert all(Limits(**{name: 1}) for name in ("concurrency", "tenant_concurrency"))
    assert Limits(rate=RATE)


counts = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 6))
bounds = st.none() | st.integers(1, 8)


@given(most=st.integers(1, 10), leased=counts, concurrency=bounds, each=bounds, taken=st.none() | st.integers(0, 12))
def test_room_keeps_to_every_limit(most, leased, concurrency, each, taken):
    """Whatever is claimed within it, and no more is left out than must be."""
    limits = Limits(concurrency=concurrency, tenant_concurrency=each, rate=None if taken is None else RATE)
    window = None if taken is None else Window(NOW, taken)

    left = room(limits, most, leased, window)

    assert left.total <= most
    assert concurrency is None or sum(leased.values()) + max(left.total, 0) <= max(concurrency, sum(leased.values()))
    assert taken is None or taken + max(left.total, 0) <= max(RATE.count, taken)
    assert left.full == {tenant for tenant, count in leased.items() if each is not None and count >= each}
    assert left.total == min(
        [most]
        + ([] if concurrency is None else [concurrency - sum(leased.values())])
        + ([] if taken is None else [max(0, RATE.count - taken)])
    )


def test_pause_covers_all_names_of_a_task():
    """Given by any of them; other tasks' aliases are not concerned."""
    aliases = {"old": "new", "older": "new", "x": "y"}

    for name in ("old", "older", "new"):
        assert all_paths([name], aliases) >= {"old", "older", "new"}
        assert not all_paths([name], aliases) & {"x", "y"}
    assert all_paths([], aliases) == frozenset()
