"""A stable name: the successor adopts what the dead one held, and a living one is never robbed."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from django_workqueue.models import Failure, Job, Lease, Worker
from django_workqueue.store import store_for
from django_workqueue.worker import naming
from django_workqueue.worker.naming import Name, NameTakenError, Standing, origin_of, standing
from django_workqueue.worker.shutdown import StopRequest
from tests.claims import claim_one
from tests.factories import JobFactory, WorkerFactory
from tests.racing import race

pytestmark = pytest.mark.django_db(transaction=True)

ELSEWHERE = "1b4e28ba:4026531836:100"


@pytest.fixture
def ended_pid() -> int:
    """Return the id of a process that has been and gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


class Starting:
    """A worker that starts under the name "web1"."""

    def __init__(self, worker_id: str = "web1:new", **given) -> None:
        self.stop, self.said = StopRequest(), []
        self.name = Name(store_for(), self.stop, self.said.append, **given)
        self.id = worker_id

    def take(self) -> bool:
        """Take the name, or wait for it until the first line is said."""
        return self.name.take(lambda: WorkerFactory.build(id=self.id, name="web1", origin=origin_of("self")))


def dead_here(pid: int, **columns) -> Worker:
    """Return the row of a process of this machine that is gone, seen a moment ago."""
    boot = origin_of("self").rpartition(":")[0]
    return WorkerFactory(name="web1", pid=pid, origin=f"{boot}:1", seen_at=timezone.now(), **columns)


# -- judging -----------------------------------------------------------------------------------------------------------


def test_running_process_lives():
    """Its start time is the one that it was registered with."""
    parent = os.getppid()

    assert standing(WorkerFactory.build(pid=parent, origin=origin_of(parent))) is Standing.LIVES


def test_process_that_is_not_there_is_gone(ended_pid):
    """At once, without waiting for its silence."""
    assert standing(dead_here(ended_pid)) is Standing.GONE


def test_another_process_with_the_same_id_is_not_the_worker():
    """Ids are used again; the start time tells them apart."""
    parent = os.getppid()
    boot = origin_of("self").rpartition(":")[0]

    assert standing(WorkerFactory.build(pid=parent, origin=f"{boot}:1")) is Standing.GONE


def test_process_that_nobody_has_waited_for_is_gone():
    """A zombie runs nothing."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    row = WorkerFactory.build(pid=process.pid, origin=origin_of(process.pid))
    assert standing(row) is Standing.LIVES
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert standing(row) is Standing.GONE
    process.communicate()


@pytest.mark.parametrize("origin", ["", ELSEWHERE])
def test_process_of_another_machine_cannot_be_judged(origin):
    """Two machines may have the same host name, and two containers the same process id."""
    assert standing(WorkerFactory.build(pid=os.getppid(), origin=origin)) is Standing.UNKNOWN


def test_process_that_executed_itself_anew_knows_its_former_life():
    """It has the same id and start time."""
    assert standing(WorkerFactory.build(pid=os.getpid(), origin=origin_of("self"))) is Standing.GONE


# -- taking ------------------------------------------------------------------------------------------------------------


def test_dead_predecessor_is_succeeded_at_once(ended_pid):
    """Its jobs are ready without backoff, the attempt counted and explained; its row is gone."""
    JobFactory()
    predecessor = dead_here(ended_pid)
    job = claim_one(store_for(), worker=predecessor.pk)
    starting = Starting()

    assert starting.take()

    assert list(Worker.objects.values_list("pk", "name")) == [("web1:new", "web1")]
    row = Job.objects.get()
    assert (row.pk, row.state, row.attempts) == (job.id, "ready", 1)
    failure = Failure.objects.get()
    assert (failure.kind, failure.next_try_at <= timezone.now()) == ("adopted", True)
    assert failure.message == f"Worker {predecessor.pk} restarted while it held the job."
    assert starting.said == [f"Adopted 1 jobs from {predecessor.pk}."]
    assert not Lease.objects.exists()


def test_other_workers_keep_what_they_hold(ended_pid):
    """A name is the worker's own, whatever its id begins with."""
    JobFactory()
    claim_one(store_for(), worker=WorkerFactory(id="web1:1:5f3a", name="web1:1").pk)
    dead_here(ended_pid)

    assert Starting().take()

    assert Job.objects.get().state == "leased"


def test_living_namesake_is_never_robbed():
    """The message says where it is, and when it was seen."""
    parent = os.getppid()
    other = WorkerFactory(name="web1", host="shop-1", pid=parent, origin=origin_of(parent))
    JobFactory()
    claim_one(store_for(), worker=other.pk)

    with pytest.raises(NameTakenError, match=rf"'web1' .* host shop-1, pid {parent}, last seen \d{{4}}-"):
        Starting().take()

    assert Job.objects.get().state == "leased"
    assert Worker.objects.get() == other


def test_namesake_elsewhere_is_waited_for_until_it_is_silent(monkeypatch):
    """Nothing else tells that another machine's process is gone."""
    monkeypatch.setattr(naming, "LOOK_SECONDS", 0)
    other = WorkerFactory(name="web1", host="shop-2", origin=ELSEWHERE, seen_at=timezone.now())
    starting = Starting()
    looks = []
    original = starting.name._store.namesake

    def look(name):
        looks.append(name)
        if len(looks) == 3:
            Worker.objects.filter(pk=other.pk).update(seen_at=timezone.now() - timedelta(minutes=1))
        return original(name)

    monkeypatch.setattr(starting.name._store, "namesake", look)

    assert starting.take()
    assert len(looks) == 3
    assert starting.said[0] == f"Waiting for the name 'web1': worker {other.pk} on host shop-2 may still live."
    assert Worker.objects.get().pk == "web1:new"


def test_namesake_elsewhere_that_is_seen_again_lives(monkeypatch):
    """It beats while the other waits."""
    monkeypatch.setattr(naming, "LOOK_SECONDS", 0)
    other = WorkerFactory(name="web1", origin=ELSEWHERE, seen_at=timezone.now() - timedelta(seconds=5))
    starting = Starting()
    starting.name._say = lambda _line: Worker.objects.update(seen_at=timezone.now())

    with pytest.raises(NameTakenError):
        starting.take()

    assert Worker.objects.get() == other


def test_stopping_namesake_is_waited_for(monkeypatch):
    """A restart is no quarrel: the old process drains, and then its name is free."""
    monkeypatch.setattr(naming, "LOOK_SECONDS", 0)
    parent = os.getppid()
    other = WorkerFactory(name="web1", pid=parent, origin=origin_of(parent), stopping=True)
    starting = Starting()
    starting.name._say = lambda line: (starting.said.append(line), store_for().retire_worker(other.pk))

    assert starting.take()
    assert "is stopping" in starting.said[0]


def test_worker_that_is_told_to_stop_does_not_go_on_waiting():
    """It holds nothing, and leaves."""
    WorkerFactory(name="web1", origin=ELSEWHERE, seen_at=timezone.now())
    starting = Starting()
    starting.name._say = lambda _line: starting.stop.request()

    assert not starting.take()


def test_sibling_leaves_its_name_to_the_successor():
    """A process that is replaced while it drains goes on under its id, with what it holds."""
    JobFactory()
    old = WorkerFactory(name="web1", pid=os.getppid(), origin=origin_of(os.getppid()))
    claim_one(store_for(), worker=old.pk)

    assert Starting(siblings=[old.pk]).take()

    assert dict(Worker.objects.values_list("pk", "name")) == {old.pk: old.pk, "web1:new": "web1"}
    assert Job.objects.get().state == "leased"


def test_of_two_that_start_at_once_one_wins(ended_pid):
    """The other is told of the winner, not of the dead."""
    dead_here(ended_pid)

    def start(worker_id):
        try:
            return Starting(worker_id).take()
        except NameTakenError as error:
            return str(error)

    answers = race(lambda: start("web1:a"), lambda: start("web1:b"))

    assert sorted(map(type, answers), key=str) == [bool, str]
    assert Worker.objects.count() == 1
    for worker_id in ("web1:a", "web1:b"):
        naming.forget(worker_id)
