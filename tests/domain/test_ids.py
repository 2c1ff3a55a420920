"""Ids: of version 7, ascending in one thread, and never twice."""

from __future__ import annotations

import copy
import pickle
import time
import uuid

from django_workqueue.domain import ids
from django_workqueue.domain.ids import new_id
from tests.racing import flat, race


def test_id_is_a_uuid_of_version_7():
    """As RFC 9562 has it: others can read its kind and its time."""
    made = new_id()

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert abs((made.int >> 80) / 1000 - time.time()) < 60


def test_id_is_a_uuid_like_any_other():
    """However it came about: it is compared, hashed, written, copied and pickled as one."""
    made = new_id()
    same = uuid.UUID(str(made))

    assert (made, hash(made), made.hex, made.is_safe) == (same, hash(same), same.hex, same.is_safe)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made


def test_ids_of_one_thread_ascend():
    """Also within a millisecond, which is what keeps jobs of one statement in order."""
    made = [new_id() for _ in range(20_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_of_many_threads_differ():
    """Two may draw the same tick; the random part keeps them apart."""
    made = flat(race(*[lambda: [new_id() for _ in range(3000)]] * 4))

    assert len(set(made)) == len(made)


def test_ids_ascend_when_the_clock_goes_back(monkeypatch):
    """A clock that was set back must not put new jobs before old ones."""
    monkeypatch.setattr(ids, "_last_tick", 0)
    first = new_id()
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3_600_000_000_000)

    assert new_id() > first
