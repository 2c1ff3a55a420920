"""``workqueue worker``: asking workers for something, from a shell."""

from __future__ import annotations

import pytest

from django_workqueue.models import Worker
from tests.factories import WorkerFactory

from .calling import call, failing, refused, report

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("act", "request_"), [("quiet", "quiet"), ("stop", "stop")])
def test_workers_are_asked_by_name(act, request_):
    """Several at once; whoever runs the command is written down unless another is named."""
    WorkerFactory(name="a"), WorkerFactory(name="b")

    found = report("worker", act, "a", "b", "--by", "olga")

    assert found == {"act": act, "workers": ["a", "b"], "refused": []}
    assert set(Worker.objects.values_list("request", "requested_by")) == {(request_, "olga")}


def test_quiet_worker_is_resumed():
    """It is asked to work again."""
    WorkerFactory(name="a", request="quiet")

    assert call("worker", "resume", "a") == "Worker 'a' is asked to work.\n"

    assert Worker.objects.get().request == "work"


def test_silent_worker_is_forgotten():
    """Its row goes."""
    WorkerFactory(name="a", silent=True)

    assert call("worker", "forget", "a") == "Worker 'a' is forgotten; its jobs come back as soon as a worker lives.\n"

    assert not Worker.objects.exists()


def test_refusal_is_told_and_does_not_stop_the_others():
    """A script must notice: the exit code says so."""
    WorkerFactory(name="a"), WorkerFactory(name="b", silent=True)

    found = failing("worker", "forget", "a", "x", "b")

    assert found["workers"] == ["b"]
    assert found["refused"] == [
        {"worker": "a", "problem": "Worker 'a' is alive. Ask it to stop instead."},
        {"worker": "x", "problem": "There is no worker 'x'. It may have stopped meanwhile."},
    ]


def test_unknown_act_is_refused():
    """By the parser, with what can be asked."""
    assert "invalid choice: 'kill'" in refused("worker", "kill", "a")
