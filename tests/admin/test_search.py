"""The search box of the lists of jobs."""

from __future__ import annotations

from uuid import uuid4

import pytest

from django_workqueue.admin.search import JOB_WORDS, LIVE_WORDS, Reach, Search
from django_workqueue.models import Job
from tests.admin.pages import listed, page
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory

pytestmark = pytest.mark.django_db

ID = "018f3c1e-0000-7000-8000-000000000001"


def meaning(text, words=LIVE_WORDS):
    """Return the lookups and values that a text stands for."""
    return [(word.lookup, value) for word, value in Search.parse(text, words).conditions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (ID, [("pk", ID)]),
        ("order-17", [("dedupe_key", "order-17")]),
        ("order:17", [("dedupe_key", "order:17")]),
        ("shop.tasks.send", [("task__startswith", "shop.tasks.send")]),
        ("shop.", [("task__startswith", "shop.")]),
        ("shop", [("task__startswith", "shop")]),
        ("key:shop.tasks", [("dedupe_key", "shop.tasks")]),
        (f"key:{ID}", [("dedupe_key", ID)]),
        ('key:"order 17"', [("dedupe_key", "order 17")]),
        ('"order 17"', [("dedupe_key", "order 17")]),
        ("tenant:acme task:shop. queue:mail", [("tenant", "acme"), ("task__startswith", "shop."), ("queue", "mail")]),
        ("lease:12", [("lease__id", "12")]),
        ("worker:web1:1:5f3a", [("lease__worker", "web1:1:5f3a")]),
        ("error:ValueError", [("last_error__startswith", "ValueError")]),
        ('"', [("dedupe_key", '"')]),
        ("key:", [("dedupe_key", "")]),
    ],
)
def test_text_is_understood_by_its_words_or_its_shape(text, expected):
    """Each condition is one lookup: an OR of id, key and task would be served by no index."""
    assert meaning(text) == expected


def test_lease_is_a_word_for_live_jobs_only():
    """Finished jobs have no lease; there the text is a key like any other."""
    assert meaning("lease:12", JOB_WORDS) == [("dedupe_key", "lease:12")]


@pytest.mark.parametrize("text", ["id:7", "lease:x", "lease:99999999999999999999", "id:"])
def test_value_that_cannot_be_finds_nothing(text):
    """A mistyped id is not an error of the server."""
    JobFactory()

    assert list(Search.parse(text, LIVE_WORDS).apply(Job.objects.all())) == []


def test_reach_tells_what_an_index_serves():
    """An id leads to one row in every table; a key does among live jobs, where there is an index over keys."""
    assert Search.parse(ID, JOB_WORDS).reaches == {Reach.FEW}
    assert Search.parse("key:a", LIVE_WORDS).reaches == {Reach.FEW}
    assert Search.parse("key:a", JOB_WORDS).reaches == {Reach.ALL}
    assert Search.parse("", JOB_WORDS).reaches == set()


@pytest.mark.parametrize(
    ("model", "factory"),
    [("job", JobFactory), ("deadletter", DeadLetterFactory), ("finishedjob", FinishedJobFactory)],
)
def test_each_list_finds_by_id_key_task_tenant_and_queue(viewer, model, factory):
    """The one job that is meant, and none of its neighbours."""
    factory.create_batch(3)
    wanted = factory(task="reports.monthly.build", tenant="acme", queue="slow", dedupe_key="march 1")

    for text in (
        wanted.pk,
        'key:"march 1"',
        "reports.m",
        "task:reports.",
        "tenant:acme",
        "queue:slow",
        "tenant:acme queue:slow",
    ):
        assert listed(viewer.get(page(model), {"q": text})) == [wanted.pk], text
    assert listed(viewer.get(page(model), {"q": f"tenant:acme {uuid4()}"})) == []


def test_task_is_searched_by_its_letters(viewer):
    """A percent sign or an underscore is itself, not a wildcard of the database."""
    JobFactory(task="shop.tasks.send")

    assert listed(viewer.get(page("job"), {"q": "task:shop_tasks"})) == []
    assert listed(viewer.get(page("job"), {"q": "task:%tasks"})) == []


@pytest.mark.parametrize("query", ["?q=%00", "?queue=a%00b", "?state=%00"])
def test_nul_character_is_no_error_of_the_server(viewer, query):
    """PostgreSQL cannot hold it; SQLite would find nothing."""
    assert viewer.get(page("job", query=query), follow=True).status_code == 200


def test_jobs_are_found_by_the_worker_that_holds_or_ran_them(viewer):
    """What a process did, and what it does now."""
    JobFactory(leased=True, lease__worker="web2:1:aaaa")
    FinishedJobFactory(worker="web2:1:aaaa")
    held, ran = JobFactory(leased=True), FinishedJobFactory()

    assert listed(viewer.get(page("job"), {"q": "worker:web1:1:5f3a"})) == [held.pk]
    assert listed(viewer.get(page("finishedjob"), {"q": "worker:web1:1:5f3a"})) == [ran.pk]


@pytest.mark.parametrize(("model", "factory"), [("job", JobFactory), ("deadletter", DeadLetterFactory)])
@pytest.mark.parametrize("text", ["ValueError", "builtins.ValueError", "ValueError: the printer", "Value"])
def test_errors_are_found_by_their_class_and_never_by_their_message(viewer, model, factory, text):
    """A message quotes what may be hidden; who could search it letter by letter could read it."""
    other = "ValueError: another message"
    rows = [factory(last_error="ValueError: the printer is on fire"), factory(last_error=other)]
    factory(last_error="KeyError: ValueError")

    assert listed(viewer.get(page(model), {"q": f'error:"{text}"'})) == [row.pk for row in reversed(rows)]
