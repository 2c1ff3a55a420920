"""Very many jobs in one call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_workqueue.exceptions import InvalidJobError
from django_workqueue.lifecycle.enqueue import JobRequest, enqueue
from django_workqueue.models import Job
from tests import samples

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 20_000
CLASHES = (0, 1, 9_999, 10_000, MANY - 1)


@pytest.fixture
def statements():
    """Count the statements of the test."""
    seen = []

    def note(run, statement, *rest):
        seen.append(statement)
        return run(statement, *rest)

    with connection.execute_wrapper(note):
        yield seen


def test_clashing_keys_among_many_are_reported_and_spoil_nothing(statements):
    """Five of twenty thousand exist already; the others are stored, in chunks (rails/solid_queue PR#93)."""
    held = {number: samples.bill.enqueue(number).id for number in CLASHES}
    statements.clear()

    results = samples.bill.enqueue_many([(number,) for number in range(MANY)])

    assert {number: result.id for number, result in enumerate(results) if result.duplicate} == held
    assert len({result.id for result in results}) == Job.objects.count() == MANY
    assert [results[number].args for number in (0, 7, MANY - 1)] == [[0], [7], [MANY - 1]]
    assert len(statements) < MANY / (10 if connection.vendor == "sqlite" else 200)


def test_many_jobs_fall_with_the_callers_transaction():
    """They are one step of it, chunks or not."""
    with transaction.atomic():
        samples.bill.enqueue_many([(number,) for number in range(3000)])
        transaction.set_rollback(True)

    assert not Job.objects.exists()


@pytest.mark.parametrize("count", [5, 500])
@pytest.mark.parametrize("keyed", [True, False])
def test_many_jobs_are_stored_as_few_are(count, keyed):
    """However they travel to the database, what is read back is what was given."""
    tenant = "\\N ü{},\\\"' NULL\\t\\."
    key = "k" * 190 + ',{}\\"'
    now = timezone.now()
    requests = [
        JobRequest(
            task="tests.samples.return_it",
            args=(None, '100% \u2028 {\\"}\t\n\r', number, f"\\{number}"),
            tenant=tenant,
            dedupe_key=f"{key}{number}" if keyed else None,
            priority=number % 7 - 3,
            metadata={"number": number},
            run_after=timedelta(hours=1) if number % 2 else None,
        )
        for number in range(count)
    ]

    stored = enqueue(requests)

    rows = {row.pk: row for row in Job.objects.all()}
    for number, (job, duplicate) in enumerate(stored):
        row = rows[job.pk]
        assert not duplicate
        assert (row.tenant, row.priority) == (tenant, number % 7 - 3)
        assert row.dedupe_key == (f"{key}{number}" if keyed else None)
        assert row.decoded_args == [None, '100% \u2028 {\\"}\t\n\r', number, f"\\{number}"]
        assert row.decoded_metadata["number"] == number
        assert (row.state, row.ready_at, row.enqueued_at) == (job.state, job.ready_at, job.enqueued_at)
        assert (row.ready_at - now > timedelta(minutes=30)) == bool(number % 2)


@pytest.mark.parametrize(
    "option", [{"priority": True}, {"max_attempts": 1.0}, {"tenant": "b\x07"}, {"metadata": {"_a": 1}}]
)
def test_later_job_is_checked_though_it_equals_the_one_before(option):
    """What neighbours have in common is checked once: the same, and not what is merely equal."""
    sound = JobRequest(task="tests.samples.add", priority=1, max_attempts=1)

    with pytest.raises(InvalidJobError):
        enqueue([sound, sound, sound._replace(**option)])

    assert not Job.objects.exists()
