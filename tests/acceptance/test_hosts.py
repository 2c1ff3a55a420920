"""Several hosts on one database, over links of their own that can be cut."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest

from django_workqueue.models import FinishedJob
from testproject.localpg import LocalPostgres

from . import hosts, tasks
from .harness import failure_kinds, settings, wait_for_books, wait_until

REASON = hosts.why_not()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.postgresql,
    pytest.mark.timeout(180),
    pytest.mark.skipif(bool(REASON), reason=REASON),
]

#: As docs/howto/hosts.md has them, and quicker.
QUICK_LINK = "connect_timeout=2&keepalives_idle=1&keepalives_interval=1&keepalives_count=2&tcp_user_timeout=3000"


@pytest.fixture
def two_hosts():
    """Yield two hosts with a link each to this machine."""
    with ExitStack() as stack:
        yield [stack.enter_context(hosts.Host(number)) for number in (0, 1)]


@pytest.fixture
def own_postgres(two_hosts):
    """Yield a server that both hosts reach, by the addresses of their links."""
    server = LocalPostgres({"listen_addresses": ",".join(host.address(1) for host in two_hosts)})
    rules = server.socket_dir / "hba"
    rules.write_text(f"local all all trust\nhost all all {hosts.NETWORK} trust\n")
    server.settings["hba_file"] = str(rules)
    with server:
        yield server


def start_on(fleet, host, *options):
    """Start a worker on a host, which knows the server by its address."""
    url = f"postgres://postgres@{host.address(1)}:5432/postgres?{QUICK_LINK}"
    return fleet.start("--concurrency", "1", *options, inside=host.inside, DATABASE_URL=url, **settings(lease=3))


def test_host_that_is_cut_off_loses_its_work_and_is_refused(fleet, diary, two_hosts, own_database):
    """The other host takes over; the late answer counts for nothing, and nothing is lost or recorded twice."""
    far, near = two_hosts
    job = tasks.hold.enqueue()
    cut_off = start_on(fleet, far)
    wait_until(diary.starts, "the job to start")

    far.cut()
    others = tasks.record.enqueue_many([()] * 20)
    other = start_on(fleet, near)
    wait_until(lambda: len(diary.starts(str(job.id))) == 2, "the other host to take the job", seconds=40)
    diary.open("gate")
    wait_for_books([job, *others], succeeded=21)
    wait_until(lambda: len(diary.entries("end", str(job.id))) == 2, "the body on the lost host to end as well")

    far.mend()
    cut_off.wait_for_log(f"on job {job.id} is lost", seconds=60)
    finished = FinishedJob.objects.get(pk=job.id)
    assert (finished.attempts, finished.result) == (2, "2")
    assert failure_kinds(job) == ["lapsed"]
    assert set(Counter(entry.job for entry in diary.starts()).values()) == {1, 2}

    assert other.stop() == 0
    more = tasks.record.enqueue_many([()] * 5)
    wait_for_books(more, succeeded=5)
    assert {entry.worker for entry in diary.starts() if entry.job in {str(each.id) for each in more}} == {cut_off.name}
