"""The leases that a worker holds: what is left of each, what is to be renewed, and what was lost."""

from __future__ import annotations

import pytest

from django_workqueue.worker import held as module
from django_workqueue.worker.held import HeldLeases

from .jobs import job


@pytest.fixture
def clock(monkeypatch):
    """Let the test set the monotonic clock."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def held(settings) -> HeldLeases:
    """Return an empty memory; leases are ten seconds long."""
    settings.WORKQUEUE = {"LEASE": 10, "QUEUES": {"slow": {"LEASE": 100}}}
    return HeldLeases()


def test_claim_is_remembered_with_its_jobs(held):
    """Each lease once, with its queue."""
    first, second, other = job(1), job(1), job(2, queue="slow")
    held.add([first, second, other], 1000.0)

    assert len(held) == 2
    assert held.queues() == {1: "default", 2: "slow"}
    assert {one.id for one in held.jobs()} == {first.id, second.id, other.id}


def test_lease_is_forgotten_with_its_last_job(held):
    """There is nothing to renew any more."""
    first, second = job(1), job(1)
    held.add([first, second], 1000.0)
    held.settled(1, [first.id])
    assert held.queues() == {1: "default"}
    held.settled(1, [second.id])

    assert len(held) == 0
    held.settled(1, [second.id])


def test_settling_knows_whether_it_is_the_last(held):
    """Then the lease goes with the jobs."""
    first, second = job(1), job(1)
    held.add([first, second], 1000.0)
    with held.closing(1, [first.id]) as last:
        assert not last
    with held.closing(1, [first.id, second.id]) as last:
        assert last
    with held.closing(77, [first.id]) as last:
        assert not last


def test_lease_that_is_being_closed_is_not_renewed(held):
    """It would look lost to the heartbeat when the settling statement has removed it."""
    first, second = job(1), job(2)
    held.add([first, second], 1000.0)
    with held.closing(1, [first.id]):
        assert held.queues() == {2: "default"}

    assert held.queues() == {1: "default", 2: "default"}


def test_lease_is_renewed_again_after_a_failed_closing(held):
    """The statement did not go through: the job still needs it."""
    one = job(1)
    held.add([one], 1000.0)
    with pytest.raises(RuntimeError), held.closing(1, [one.id]):
        raise RuntimeError

    assert held.queues() == {1: "default"}


def test_spoilt_lease_is_never_closed(held):
    """A job was left to it, which must come back by its lapse."""
    first, second = job(1), job(1)
    held.add([first, second], 1000.0)
    held.spoil(1)
    held.settled(1, [first.id])
    with held.closing(1, [second.id]) as last:
        assert not last
    held.spoil(77)
    held.settled(1, [second.id])
    assert held.known() == {1}


def test_lost_lease_is_known_and_not_renewed(held):
    """It is the reaper's, and must not be taken for a claim whose answer never came."""
    held.add([job(1), job(2)], 1000.0)
    held.lost([1])
    held.refused(3)

    assert held.queues() == {2: "default"}
    assert held.known() == {1, 2, 3}
    assert len(held.jobs()) == 1


def test_memory_of_lost_leases_is_bounded(held, monkeypatch):
    """They are reaped within seconds."""
    monkeypatch.setattr(module, "_LOST_REMEMBERED", 3)
    for number in range(10):
        held.refused(number)

    assert held.known() == {7, 8, 9}


def test_job_may_start_while_its_lease_surely_holds(held, clock):
    """By the monotonic clock of this process, counted from before the claim."""
    one, slow = job(1), job(2, queue="slow")
    held.add([one, slow], 1000.0)
    assert held.may_start(one)
    clock[0] = 1009.9
    assert held.may_start(one)
    clock[0] = 1010.0

    assert not held.may_start(one)
    assert held.may_start(slow)


def test_renewal_lets_jobs_start_for_another_lease(held, clock):
    """Counted from before the renewing statement."""
    one = job(1)
    held.add([one], 1000.0)
    held.renewed([1, 77], 1008.0)
    clock[0] = 1017.0
    assert held.may_start(one)
    clock[0] = 1018.0

    assert not held.may_start(one)


def test_job_of_a_lost_lease_never_starts(held, clock):
    """It is somebody else's by now."""
    one = job(1)
    held.add([one], 1000.0)
    held.lost([1])

    assert not held.may_start(one)
    assert not held.may_start(job(5))
