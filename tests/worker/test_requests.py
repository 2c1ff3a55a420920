"""What a worker does of what a person wants."""

from __future__ import annotations

import pytest

from django_workqueue.worker.requests import Requests

from .bench import Bench

pytestmark = pytest.mark.django_db


@pytest.fixture
def bench(store) -> Bench:
    """Return a worker without threads."""
    return Bench()


def test_each_request_is_heeded_once(bench):
    """It comes back at every beat, and is no news then."""
    requests = Requests("w", bench.dispatcher, bench.stop)

    assert not requests.heed("work")
    assert requests.heed("quiet")
    assert bench.dispatcher.standing == "quiet"
    assert not requests.heed("quiet")
    assert requests.heed("work")
    assert bench.dispatcher.standing == "running"


def test_stop_is_told_to_the_supervisor_before_it_shows(bench):
    """Else it would start another in the place of one that a person has stopped; a signal later is the first one."""
    requests, told = Requests("w", bench.dispatcher, bench.stop), []
    requests.tell = lambda: told.append((requests.is_dismissed, bench.stop.requested))

    assert requests.heed("stop")

    assert told == [(True, False)]
    assert bench.stop.requested
    bench.stop.request()
    assert not bench.stop.now
