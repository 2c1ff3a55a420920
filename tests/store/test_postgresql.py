"""What is particular to PostgreSQL: absence and return of the server, notifications, the worker's own session."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.db import Error, OperationalError, connection, connections, transaction

from django_workqueue.domain.outcomes import ClaimedJob
from django_workqueue.exceptions import QueueUnavailableError
from django_workqueue.lifecycle.enqueue import JobRequest, enqueue
from django_workqueue.models import Job
from django_workqueue.store import store_for
from django_workqueue.store.listening import CHANNEL, messages, read
from tests import samples
from tests.claims import claim, claim_one, complete
from tests.factories import JobFactory

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


# -- a server that is away ---------------------------------------------------------------------------------------------


@contextmanager
def database_on(server):
    """Let the default alias be a database of ``server`` for the block."""
    wrapper = connections["default"]
    wrapper.close()
    saved = dict(wrapper.settings_dict)
    wrapper.settings_dict.update(HOST=str(server.socket_dir), NAME="postgres", USER="postgres", PASSWORD="", PORT="")
    try:
        yield wrapper
    finally:
        wrapper.close()
        wrapper.settings_dict.update(saved)


def test_enqueue_while_the_server_is_away_raises_and_the_next_one_is_stored(own_postgres):
    """An open connection breaks, a new one is refused, and after the restart all is well again."""
    with database_on(own_postgres) as wrapper:
        with wrapper.schema_editor() as editor:
            editor.create_model(Job)
        samples.add.enqueue(1, 2)
        own_postgres.stop()

        for _ in range(2):
            with pytest.raises(QueueUnavailableError, match="Nothing was stored"):
                samples.add.enqueue(3, 4)
        own_postgres.start()
        wrapper.close()
        samples.add.enqueue(5, 6)

        assert sorted(job.decoded_args for job in Job.objects.all()) == [[1, 2], [5, 6]]


def test_server_that_stops_within_the_callers_transaction_takes_both_back(own_postgres):
    """The business row and the job stand or fall together, and the caller hears of it."""
    with database_on(own_postgres) as wrapper:
        with wrapper.schema_editor() as editor:
            editor.create_model(Job)

        with pytest.raises(Error), transaction.atomic():  # noqa: PT012 - it is the block's end that raises
            samples.add.enqueue(1, 2)
            own_postgres.stop("immediate")
            with pytest.raises(QueueUnavailableError):
                samples.bill.enqueue(7)
        own_postgres.start()
        wrapper.close()

        assert not Job.objects.exists()


def test_statement_at_fault_is_not_called_an_absence(store):
    """A deadlock, a lock timeout or a wrong value are told as they are."""
    for state, away in (("40P01", False), ("22P02", False), ("57P01", True), ("08006", True), ("53300", True)):
        cause = psycopg.errors.lookup(state)("told by the server")
        error = OperationalError("wrapped")
        error.__cause__ = cause
        assert store.is_unavailable(error) is away


# -- notifications -----------------------------------------------------------------------------------------------------


def hear(store, act) -> list:
    """Return what an ear hears of ``act``, until it is silent."""
    with store.listening() as ear:
        act()
        heard = []
        while got := list(ear.hear(0.3)):
            heard += got
        return heard


def test_enqueue_is_heard_after_the_commit(store):
    """Listeners learn the lane, and nothing of the payload."""
    assert hear(store, lambda: samples.send.enqueue("a@example.com")) == [{("mail", "acme")}]


def test_rolled_back_enqueue_is_not_heard(store):
    """Nobody is woken for what never was."""

    def act():
        with transaction.atomic():
            samples.add.using(tenant="rolled-back").enqueue(1, 2)
            transaction.set_rollback(True)

    assert hear(store, act) == []


def test_delayed_job_wakes_nobody(store):
    """There is nothing to do yet."""
    assert hear(store, lambda: samples.add.using(run_after=timedelta(hours=1), tenant="later").enqueue(1, 2)) == []


def test_suppressed_duplicate_wakes_nobody(store):
    """Its first job has done so."""
    samples.bill.enqueue(7)

    assert hear(store, lambda: samples.bill.enqueue(7)) == []


def test_batch_over_many_lanes_is_one_message(store):
    """A lane is named once, however many jobs it got."""
    requests = [JobRequest(task="tests.samples.add", tenant=f"many{number % 3}") for number in range(9)]

    assert hear(store, lambda: enqueue(requests)) == [{("default", f"many{number}") for number in range(3)}]


def test_payload_of_a_megabyte_does_not_reach_the_notification(store, settings):
    """PostgreSQL refuses notifications of 8,000 bytes (saurabhnanda/odd-jobs#42)."""
    settings.WORKQUEUE = {"MAX_PAYLOAD_BYTES": 2_000_000}
    task = samples.return_it.using(tenant="large")

    assert hear(store, lambda: task.enqueue("x" * 1_000_000)) == [{("default", "large")}]


def test_probe_is_heard_by_its_sender_alone(store):
    """It goes over a channel of its own."""
    with store.listening() as mine, store.listening() as other:
        mine.probe()

        assert list(mine.hear(5)) == [None]
        assert list(other.hear(0.2)) == []


def test_foreign_messages_are_no_lanes(store):
    """Anyone may send on the channel, and a listener must outlive it."""

    def act():
        with connection.cursor() as cursor:
            for text in ("", "no json", "7", '"x"', "[1]", '[["a"]]', '[["a", 1]]', "{}", "null"):
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, text])

    assert set(map(frozenset, hear(store, act))) == {frozenset()}


def test_many_lanes_are_sent_in_parts_that_the_server_takes(store):
    """A thousand lanes with long names in another script come through whole."""
    lanes = {("queue" * 10, f"{'ü' * 90}{number}") for number in range(300)}

    parts = list(messages(lanes))

    assert len(parts) > 1
    assert max(len(part.encode()) for part in parts) < 8000
    assert {lane for part in parts for lane in read(part)} == lanes
    assert all(json.loads(part) for part in parts)
    heard = hear(store, lambda: store.notify(lanes))
    assert set().union(*heard) == lanes


def test_no_lanes_are_no_message():
    """Nothing to say."""
    assert list(messages(set())) == []


# -- the session -------------------------------------------------------------------------------------------------------


def test_worker_session_rules_out_plans_over_the_whole_table(store):
    """The planner believes an emptied table empty for minutes."""
    with connection.cursor() as cursor:
        for name in (
            "enable_seqscan",
            "enable_sort",
            "enable_bitmapscan",
            "enable_hashjoin",
            "enable_mergejoin",
            "jit",
        ):
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("off",)


def test_session_of_a_lost_connection_is_replaced(store):
    """After a reconnect the plans are pinned again."""
    connection.close()
    store.prepare()

    JobFactory()
    assert complete(store, claim_one(store))


def test_claim_is_the_same_without_a_session(store):
    """Django's own cursor, as in a test case, reads the same rows."""
    JobFactory.create_batch(2, args='[1, "ü"]', metadata='{"a": 1}', dedupe_key=None)
    plain = store_for()

    [first], [second] = claim(store, limit=1), claim(plain, limit=1)

    assert first._replace(id=None, lease_id=0, ready_at=None, enqueued_at=None) == second._replace(
        id=None, lease_id=0, ready_at=None, enqueued_at=None
    )
    assert list(map(type, first)) == list(map(type, second)) == [type(value) for value in ClaimedJob(*first)]
    assert first.ready_at.utcoffset() == second.ready_at.utcoffset() == timedelta()


@pytest.fixture
def pooled():
    """Return the store of a worker behind a transaction pooler."""
    made = store_for(pooled=True)
    connections["default"].close()
    made.prepare()
    return made


def test_pooled_worker_pins_its_plans_in_each_transaction(pooled):
    """The next statement may meet another server process, which knows nothing of this one."""
    assert pooled._rows("SELECT current_setting('enable_seqscan'), current_setting('enable_sort')") == [("off", "off")]


def test_pooled_worker_leaves_nothing_in_the_session(pooled):
    """No setting and no prepared statement outlives a transaction (bensheldon/good_job#52)."""
    before = session_settings()
    JobFactory.create_batch(2)
    job = claim_one(pooled)
    for _ in range(10):
        assert pooled.renew({job.lease_id: timedelta(seconds=30)})
        assert pooled.lanes("default") == [""]
        pooled.promote()
    assert complete(pooled, job) == {job.id}

    assert session_settings() == before
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone() == (0,)


def session_settings() -> dict[str, str]:
    """Return every setting of the session as it stands."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings")
        return dict(cursor.fetchall())


def test_pooled_worker_reads_the_same_rows(pooled, store):
    """A claim is a claim, percent signs and all."""
    JobFactory.create_batch(2, args='["100%", "%s", "ü"]', tenant="50%")

    [first], [second] = claim(store, "50%", limit=1), claim(pooled, "50%", limit=1)

    unlike = {"id": None, "lease_id": 0, "ready_at": None, "enqueued_at": None}
    assert first._replace(**unlike) == second._replace(**unlike)
    assert list(map(type, first)) == list(map(type, second))


def test_errors_of_the_session_are_djangos(store):
    """Callers catch one family of errors."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 1")

    with pytest.raises(OperationalError, match="statement timeout"):
        store._rows("SELECT pg_sleep(%(seconds)s)", {"seconds": 1})
    connection.close()
