"""What looking may not do: hold anything up, change anything, or take for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.expressions import RawSQL

from django_workqueue.admin import looking
from django_workqueue.admin.base import ReadOnlyMixin
from django_workqueue.lifecycle import operate
from django_workqueue.models import Job
from tests.admin.pages import page
from tests.factories import DeadLetterFactory, JobFactory

pytestmark = pytest.mark.django_db

SETTINGS = ("statement_timeout", "transaction_read_only", "enable_seqscan", "enable_sort", "jit")


def settings():
    """Return how the connection is set."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in SETTINGS))
        return cursor.fetchone()


@pytest.fixture
def slow(monkeypatch):
    """Let every statement about rows take twenty seconds, of which a page is given a few tenths."""
    real = ReadOnlyMixin.get_queryset

    def sleeping(self, request):
        return real(self, request).annotate(slept=RawSQL("SELECT 1 FROM pg_sleep(20)", ()))

    monkeypatch.setattr(ReadOnlyMixin, "get_queryset", sleeping)
    monkeypatch.setattr(looking, "PATIENCE", timedelta(seconds=0.3))


@pytest.mark.postgresql
@pytest.mark.parametrize("model", ["job", "deadletter"])
def test_list_that_takes_too_long_says_so(viewer, slow, model):
    """Rather than keep the database and the person busy for minutes (good_job#1532)."""
    JobFactory()
    DeadLetterFactory()

    response = viewer.get(page(model, query="?queue=default"))

    assert response.status_code == 200
    assert "Narrow the filter" in response.content.decode().replace("\n", " ")
    assert page(model) in response.content.decode()


@pytest.mark.postgresql
def test_page_of_a_row_that_takes_too_long_says_so(viewer, slow):
    """A database that is overloaded is the moment at which people look."""
    assert "too long" in viewer.get(page("job", JobFactory().pk)).content.decode()


@pytest.mark.postgresql
def test_question_before_an_operation_on_all_says_so_too(operator, slow):
    """What matches is looked for by the same conditions."""
    DeadLetterFactory()

    assert "too long" in operator.get(page("deadletter", name="all_requeue")).content.decode()


@pytest.mark.postgresql
def test_connection_is_put_back_as_it_was(viewer, slow):
    """The next request on it may be a payment."""
    JobFactory()
    before = settings()

    viewer.get(page("job"))
    viewer.get(page("worker"))

    assert settings() == before


@pytest.mark.postgresql
def test_connection_is_put_back_after_a_page_that_was_shown(viewer):
    """As after one that was not."""
    job, before = JobFactory(), settings()

    assert viewer.get(page("job")).status_code == viewer.get(page("job", job.pk)).status_code == 200

    assert settings() == before


@pytest.mark.postgresql
def test_server_itself_refuses_a_look_that_would_write_or_lock(viewer, monkeypatch):
    """Whatever a project's subclass does: the transaction is a read-only one."""
    seen = []
    real = ReadOnlyMixin.get_queryset

    def watching(self, request):
        seen.append(settings())
        return real(self, request)

    monkeypatch.setattr(ReadOnlyMixin, "get_queryset", watching)
    job = JobFactory()

    viewer.get(page("job"))
    viewer.get(page("job", job.pk))

    assert seen
    assert all(read_only == "on" and seqscan == "off" for _, read_only, seqscan, *_ in seen)
    assert Job.objects.filter(pk=job.pk).exists()


@pytest.mark.sqlite
def test_embedded_database_is_looked_at_without_a_transaction(viewer):
    """There the one open transaction could be the writer that everybody waits for."""
    JobFactory()

    assert viewer.get(page("job")).status_code == 200


@pytest.mark.postgresql
def test_statistics_leave_the_transaction_of_their_caller_as_it_was():
    """They are asked for by views and tasks that write before and after."""
    JobFactory()
    before = settings()

    operate.stats()

    assert settings() == before
    JobFactory()
    assert Job.objects.count() == 2


@pytest.mark.postgresql
def test_who_looks_while_looking_is_bounded_as_before(store):
    """A page gives its statements less time than a program does."""
    with store.looking(timedelta(seconds=3)), store.looking(timedelta(seconds=20)):
        assert settings()[0] == "3s"

    with store.looking(timedelta(seconds=20)):
        assert settings()[0] == "20s"
