"""Leaving no trace: the next job in this thread finds its connections as good as new."""

from __future__ import annotations

from threading import Thread

import pytest
from django.db import connection, connections, reset_queries, transaction

from django_workqueue.worker.reset import close_connections, reset_connections
from tests.factories import QueueFactory

pytestmark = pytest.mark.django_db(transaction=True)


def in_a_thread(act) -> None:
    """Run ``act`` in a thread of its own, as an executor does."""
    errors = []

    def run():
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - for the test to raise
            errors.append(error)
        finally:
            connections.close_all()

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def begin_by_hand():
    """Open a transaction by a statement."""
    connection.cursor().execute("BEGIN")


def enter_a_block():
    """Enter atomic and never leave it."""
    transaction.atomic().__enter__()
    QueueFactory(name="left-open")


def switch_autocommit_off():
    """Take transactions into one's own hands."""
    transaction.set_autocommit(False)
    QueueFactory(name="left-open")


def break_the_block():
    """Catch a database error inside a block, which stays broken."""
    transaction.atomic().__enter__()
    connection.needs_rollback = True


def leave_a_hook():
    """Register work for a commit that never comes."""
    transaction.atomic().__enter__()
    transaction.on_commit(lambda: pytest.fail("The hook of one job ran in another."))


def close_in_a_block():
    """Close the connection while a block is open."""
    transaction.atomic().__enter__()
    connection.close()


@pytest.mark.parametrize(
    "mess", [begin_by_hand, enter_a_block, switch_autocommit_off, break_the_block, leave_a_hook, close_in_a_block]
)
def test_whatever_a_job_left_behind_is_gone(mess):
    """The next job commits on its own, and nothing of the last one is committed with it."""

    def two_jobs():
        connection.ensure_connection()
        mess()
        reset_connections()
        assert not connection.in_atomic_block
        assert transaction.get_autocommit()
        QueueFactory(name="next-job")
        with transaction.atomic():
            transaction.on_commit(lambda: None)

    in_a_thread(two_jobs)

    assert {row.name for row in type(QueueFactory.build()).objects.all()} == {"next-job"}


def test_sound_connection_stays_open():
    """Connecting anew for every job would cost more than the job."""

    def two_jobs():
        QueueFactory(name="one")
        first = connection.connection
        reset_connections()
        QueueFactory(name="two")
        assert connection.connection is first

    in_a_thread(two_jobs)


def test_connection_that_broke_is_replaced():
    """The next job gets a new one."""

    def two_jobs():
        QueueFactory(name="one")
        connection.connection.close()
        connection.errors_occurred = True
        reset_connections()
        QueueFactory(name="two")

    in_a_thread(two_jobs)


def test_query_log_does_not_grow(settings):
    """With DEBUG on, each thread keeps its queries (django/django PR#2772)."""
    settings.DEBUG = True

    def jobs():
        reset_queries()
        for _ in range(3):
            QueueFactory()
            assert connection.queries
            reset_connections()
            assert connection.queries == []

    in_a_thread(jobs)


def test_thread_that_never_connected_is_left_alone(monkeypatch):
    """Most short jobs use no database, and looking costs more than they do."""

    class Untouched:
        def all(self, **_options):
            pytest.fail("It looked.")

    monkeypatch.setattr("django_workqueue.worker.reset.connections", Untouched())

    in_a_thread(reset_connections)


def test_ending_thread_leaves_no_connection():
    """Slots come and go; the server's connections must not add up."""

    def job():
        QueueFactory()
        close_connections()
        assert connection.connection is None

    in_a_thread(job)
