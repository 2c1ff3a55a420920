"""What running jobs want written: progress now and then, renewals at once."""

from __future__ import annotations

import pytest

from django_workqueue.worker import errands as module
from django_workqueue.worker.errands import Errands

from .jobs import job


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that the test moves."""

    class Clock:
        now = 1000.0

    monkeypatch.setattr(module.time, "monotonic", lambda: Clock.now)
    return Clock


def written(errands):
    """Write what is due and return it."""
    rows = []
    errands.write_progress(lambda *row: rows.append(row))
    return rows


def test_last_value_wins(clock):
    """A loop may report a thousand times between two writes."""
    errands, one = Errands(), job()
    for number in range(1000):
        errands.report(one, str(number))

    assert written(errands) == [(one.id, one.lease_id, "999")]
    assert written(errands) == []


def test_progress_of_a_job_is_written_about_twice_a_second(clock):
    """Of each by itself; what comes too early waits and is not forgotten."""
    errands, one, other = Errands(), job(), job()
    errands.report(one, "1")
    assert len(written(errands)) == 1
    errands.report(one, "2")
    errands.report(other, "1")
    assert [row[0] for row in written(errands)] == [other.id]

    clock.now += 0.5

    assert written(errands) == [(one.id, one.lease_id, "2")]


def test_progress_that_could_not_be_written_is_kept_unless_a_newer_one_came(clock):
    """The database was away for a moment."""
    errands, one, other = Errands(), job(), job()
    errands.report(one, "1")
    errands.report(other, "1")

    def fail(*_row):
        errands.report(one, "2")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        errands.write_progress(fail)

    assert {row[2] for row in written(errands) if row[0] == one.id} == {"2"}


def test_wait_ends_with_a_report(clock):
    """Whoever waits wakes at once for the first, and for a second one when its time has come."""
    errands, one = Errands(), job()
    errands.report(one, "1")
    errands.wait(60)
    written(errands)
    errands.report(one, "2")
    errands.wait(60)

    assert written(errands) == []


def test_renewals_are_taken_once():
    """Each gets one answer."""
    errands, one = Errands(), job()
    answer = errands.renew(one)

    [(asked, given)] = errands.renewals()

    assert (asked, given) == (one, answer)
    assert list(errands.renewals()) == []
