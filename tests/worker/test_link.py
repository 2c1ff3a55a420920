"""The link between a supervisor and its processes: what goes up, what comes down, and that its end is heard."""

from __future__ import annotations

import socket

import pytest

from django_workqueue.worker.link import ENVIRONMENT, Link, LinkThread, Report, Welcome, Wire
from django_workqueue.worker.shutdown import StopRequest

from .jobs import wait_until


@pytest.fixture
def ends():
    """Yield the two ends of a link, the supervisor's first."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Wire(ours), Wire(theirs)


def test_process_learns_its_place(monkeypatch):
    """From what its environment names; a worker that a job starts is not supervised."""
    ours, theirs = socket.socketpair()
    with ours:
        Wire(ours).send({"number": 2, "siblings": ["web1-2:5f3a"]})
        monkeypatch.setenv(ENVIRONMENT, str(theirs.detach()))
        link = Link.from_environment()

        assert link.welcome == Welcome(number=2, siblings=["web1-2:5f3a"])
        assert Link.from_environment() is None
        link.close()


def test_order_that_came_with_the_welcome_is_not_lost(ends):
    """The supervisor may be stopped while its processes start."""
    ours, theirs = ends
    ours.send({"number": 1})
    ours.send("stop")
    link = Link(theirs)

    assert link.orders(30) == ["stop"]
    assert link.orders(0) == []


def test_values_come_whole(ends):
    """However the bytes are cut on their way; what is no value is passed over."""
    ours, theirs = ends
    ours._end.send(b'"one"\n"tw')
    assert theirs.receive() == ["one"]
    ours._end.send(b'o"\n{"cut of\n"three"\n')

    assert theirs.receive() == ["two", "three"]


def test_nobody_waits_for_a_side_that_does_not_read(ends):
    """Nor for one that is gone."""
    ours, theirs = ends
    for _ in range(50_000):
        ours.send("stop")
    theirs.close()
    ours.send("stop")

    assert ours.receive() is None


def test_thread_reports_and_carries_out_orders(ends):
    """It reports at once when it is asked to, and every second."""
    ours, theirs = ends
    ours.send({"number": 1})
    done = []
    orders = {"retire": lambda: done.append("retire"), "stop": lambda: done.append("stop")}
    thread = LinkThread(Link(theirs), lambda: Report(worker="w", ready=True), orders, lambda: done.append("crash"))
    thread.tell()
    assert Report(**ours.receive()[0]) == Report(worker="w", ready=True)

    thread.start()
    ours.send("retire")
    wait_until(lambda: done == ["retire"], "the order")
    assert ours.receive()
    ours._end.shutdown(socket.SHUT_RDWR)
    thread.join(30)

    assert done == ["retire", "stop"]


def test_supervisor_that_is_gone_counts_as_one_request():
    """A signal after it is a first one still: a service manager sends it to all processes of a group at once."""
    stop = StopRequest()
    stop.drain()
    stop.drain()
    assert (stop.requested, stop.now) == (True, False)
    stop.request()
    assert not stop.now
    stop.request()

    assert stop.now
