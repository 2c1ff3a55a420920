"""The memory of lanes: turns, and marks, as single steps. What holds over any sequence is in the model's test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_workqueue.domain.ids import new_id
from django_workqueue.domain.outcomes import ClaimedJob
from django_workqueue.domain.rotation import FIRST_ID, FIRST_RANK, LAST_RANK, SLACK, LaneTurn, Rotation, Segment

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WHOLE = (Segment(FIRST_RANK, None, LAST_RANK),)


def job(tenant: str, *, priority: int = 0, ready_at: datetime = NOON) -> ClaimedJob:
    """Return a claimed job of a lane."""
    values = dict.fromkeys(ClaimedJob._fields)
    return ClaimedJob(**values | {"id": new_id(), "tenant": tenant, "priority": priority, "ready_at": ready_at})


def rotation(*tenants: str) -> Rotation:
    """Return a rotation that knows these lanes."""
    made = Rotation()
    made.learn(tenants)
    return made


def order(made: Rotation) -> list[str]:
    """Return all lanes in the order of their turns."""
    return [turn.tenant for turn in made.turn(1000)]


def test_new_lanes_go_behind_known_ones():
    """Learning a lane again does not move it."""
    made = rotation("a", "b")
    made.learn(["a", "c", "b"])

    assert order(made) == ["a", "b", "c"]
    assert (len(made), "c" in made, "d" in made) == (3, True, False)


def test_turn_is_bounded():
    """A claim looks at so many lanes and no more."""
    assert [turn.tenant for turn in rotation("a", "b", "c").turn(2)] == ["a", "b"]


def test_served_lane_goes_to_the_end():
    """Whoever waited longest is next."""
    made = rotation("a", "b", "c")
    made.settle(made.turn(2), [job("a"), job("b")], full=True)

    assert order(made) == ["c", "a", "b"]


def test_lane_that_was_looked_at_and_had_nothing_is_dropped():
    """It comes back by a notification or the next walk."""
    made = rotation("a", "b", "c")
    made.settle(made.turn(3), [job("b")], full=False)

    assert order(made) == ["b"]


def test_lane_behind_the_last_one_served_is_kept_when_the_claim_was_full():
    """It was not looked at, so nothing is known of it."""
    made = rotation("a", "b", "c")
    made.settle(made.turn(3), [job("b")], full=True)

    assert order(made) == ["c", "b"]


def test_claim_that_found_nothing_drops_all_its_lanes():
    """Nothing more to ask them."""
    made = rotation("a", "b")
    made.settle(made.turn(2), [], full=False)

    assert len(made) == 0


def test_fresh_lane_is_looked_at_from_its_start():
    """No mark, one stretch over all ranks."""
    assert rotation("a").turn(1) == [LaneTurn("a", WHOLE)]


def test_mark_begins_a_little_before_the_last_job():
    """A row may be committed a little later than its stamp."""
    made = rotation("a")
    made.settle(made.turn(1), [job("a", ready_at=NOON)], full=True)

    [turn] = made.turn(1)
    assert turn.segments == (Segment(FIRST_RANK, None, -1), Segment(0, NOON - SLACK, LAST_RANK))


def test_mark_among_jobs_of_one_stamp_is_the_job_itself():
    """A batch that was enqueued at one moment is not begun anew by every claim: ids tell its jobs apart."""
    made = rotation("a")
    last = job("a", ready_at=NOON)
    made.settle(made.turn(1), [job("a", ready_at=NOON)._replace(id=FIRST_ID), last], full=True, at=NOON + 2 * SLACK)

    [turn] = made.turn(1)
    assert turn.segments[1] == Segment(0, NOON, LAST_RANK, last.id)


def test_mark_is_never_younger_than_what_may_still_be_committed():
    """A claim that runs right behind the enqueue leaves room for rows of the same moment that are not committed yet."""
    made = rotation("a")
    made.settle(made.turn(1), [job("a", ready_at=NOON)], full=True, at=NOON)

    [turn] = made.turn(1)
    assert turn.segments[1] == Segment(0, NOON - SLACK, LAST_RANK, FIRST_ID)


def test_each_priority_has_its_own_mark():
    """An urgent job that is new must not lie before the mark of an ordinary one."""
    made = rotation("a")
    later = NOON + timedelta(minutes=1)
    made.settle(made.turn(1), [job("a", priority=5), job("a", priority=0, ready_at=later)], full=True)

    [turn] = made.turn(1)
    assert turn.segments == (
        Segment(FIRST_RANK, None, -6),
        Segment(-5, NOON - SLACK, -1),
        Segment(0, later - SLACK, LAST_RANK),
    )


def test_mark_of_the_highest_priority_is_the_first_stretch():
    """Nothing lies before it."""
    made = rotation("a")
    made.settle(made.turn(1), [job("a", priority=100)], full=True)

    assert made.turn(1)[0].segments == (Segment(FIRST_RANK, NOON - SLACK, LAST_RANK),)


def test_mark_never_goes_back():
    """An older job that came late does not undo what is known."""
    made = rotation("a")
    made.settle(made.turn(1), [job("a")], full=True)
    made.settle(made.turn(1), [job("a", ready_at=NOON - timedelta(hours=1))], full=True)

    assert made.turn(1)[0].segments[1].after == NOON - SLACK


@pytest.mark.parametrize("tenants", [None, ["a"]])
def test_forgotten_marks_show_everything_again(tenants):
    """Of all lanes, or of those to which work came back."""
    made = rotation("a")
    made.settle(made.turn(1), [job("a")], full=True)

    made.forget_marks(tenants)

    assert made.turn(1)[0].segments == WHOLE


def test_marks_of_other_lanes_are_kept():
    """Only what is named is forgotten, and an unknown lane is no error."""
    made = rotation("a", "b")
    made.settle(made.turn(2), [job("a"), job("b")], full=True)

    made.forget_marks(["a", "unknown"])

    assert [len(turn.segments) for turn in made.turn(2)] == [1, 2]


def test_lane_that_is_learned_anew_has_no_mark():
    """It was found empty; whatever is there now is to be found."""
    made = rotation("a")
    made.settle(made.turn(1), [job("a")], full=True)
    made.settle(made.turn(1), [], full=False)
    made.learn(["a"])

    assert made.turn(1)[0].segments == WHOLE


def test_job_of_a_lane_that_was_forgotten_meanwhile_is_no_error():
    """Memory is never needed to be right."""
    made = rotation("a")
    asked = made.turn(1)
    made.settle(asked, [], full=False)

    made.settle([], [job("a")], full=False)

    assert len(made) == 0
