"""The columns of the lists of jobs: short, and whole where the pointer rests."""

from __future__ import annotations

import pytest

from tests.admin.pages import Elements, page
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, LeaseFactory, ago

pytestmark = pytest.mark.django_db

PLACES = {"job": JobFactory, "finishedjob": FinishedJobFactory, "deadletter": DeadLetterFactory}


def text(response):
    """Return a page's source on one line, with plain spaces."""
    return " ".join(response.content.decode().replace("\xa0", " ").split())


@pytest.mark.parametrize("model", PLACES)
def test_job_is_told_by_task_and_id_in_short(viewer, model):
    """The whole path and the whole id are in the titles, and the id can be copied."""
    job = PLACES[model](task="shop.tasks.send_receipt")
    response = viewer.get(page(model))

    elements = Elements(response).found
    assert ("span", {"title": "shop.tasks.send_receipt"}) in elements
    (code,) = [attributes for tag, attributes in elements if tag == "code"]
    assert (code["title"], code["data-copy"]) == (str(job.pk), str(job.pk))
    assert f">{str(job.pk)[:8]}…{str(job.pk)[-4:]}</code>" in text(response)
    assert page(model, job.pk) in text(response)


@pytest.mark.parametrize("model", PLACES)
def test_arguments_begin_in_the_list(viewer, model):
    """As they would stand in a call, sixty characters of them."""
    PLACES[model](args='[17, "\u00fc"]', kwargs='{"copy": true, "note": "' + "x" * 200 + '"}')

    shown = text(viewer.get(page(model)))

    assert "17, &quot;ü&quot;, copy=true, note=&quot;xxx" in shown
    assert "x" * 60 not in shown


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ("[not json", "[not json"),
        ("null", "null"),
        ('["\\ud800"]', "\\ud800"),
        ("[" * 3000, "[" * 50),
        ('"' + "x" * 30_000, "characters"),
    ],
)
@pytest.mark.parametrize("model", PLACES)
def test_arguments_that_cannot_be_decoded_or_are_large_do_no_harm(viewer, model, args, told):
    """One such row must not hide the others, nor cost more than they do."""
    PLACES[model](args=args)
    PLACES[model](args="[4711]")

    shown = text(viewer.get(page(model)))

    assert ">4711" in shown
    assert told in shown


@pytest.mark.parametrize("model", PLACES)
def test_queue_is_told_with_tenant_and_priority(viewer, model):
    """Where a job waits is all three."""
    PLACES[model](queue="mail", tenant="acme", priority=7)

    shown = text(viewer.get(page(model)))

    assert (
        'mail<br><span class="workqueue-quiet">acme</span><br><span class="workqueue-quiet">priority 7</span>' in shown
    )


def test_running_job_is_told_with_its_worker_and_since_when(viewer):
    """A process that is silent, or a job that is long, is seen here."""
    JobFactory(leased=True, lease=LeaseFactory(worker="web1:1:5f3a", acquired_at=ago(minutes=11)))

    shown = text(viewer.get(page("job")))

    assert "web1:1:5f3a<br>" in shown
    assert "for 11 min " in shown


def test_dead_letter_is_told_with_its_first_failure_and_last_worker(viewer):
    """A cause has a place and a beginning."""
    DeadLetterFactory(failures=2, failures__failed_at=ago(hours=3), failures__worker="web7:1:5f3a")

    shown = text(viewer.get(page("deadletter")))

    assert "first failed <time" in shown
    assert ">3 hours ago</time>" in shown
    assert ">web7:1:5f3a<" in shown


@pytest.mark.parametrize("model", PLACES)
def test_number_of_statements_does_not_grow_with_the_rows(viewer, model, django_assert_max_num_queries):
    """A page of a hundred costs what a page of one does."""
    PLACES[model].create_batch(30)

    with django_assert_max_num_queries(16):
        viewer.get(page(model))


def test_held_jobs_come_with_their_leases_in_one_statement(viewer, django_assert_max_num_queries):
    """Not one more for each."""
    JobFactory.create_batch(20, leased=True)

    with django_assert_max_num_queries(16):
        viewer.get(page("job"))
