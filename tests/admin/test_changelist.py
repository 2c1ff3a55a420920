"""Lists that read a bounded number of rows."""

from __future__ import annotations

from itertools import chain

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.formats import localize

from django_workqueue.admin.changelist import BoundedChangeList, CappedCount
from tests.admin.pages import SCREENS, listed, page, statements
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, QueueFactory

pytestmark = pytest.mark.django_db


def flat(lists):
    """Return the members of all lists, in order."""
    return list(chain.from_iterable(lists))


def walk(client, model, query=""):
    """Return the keys on each page of a list, following its links to older rows."""
    keys = []
    while query is not None:
        response = client.get(page(model, query=query))
        keys.append(listed(response))
        query = response.context["cl"].older
    return keys


def test_five_thousand_rows_are_paged_without_counting_them(viewer, monkeypatch):
    """Every job is shown once, newest first; no page counts the table or skips rows by OFFSET."""
    monkeypatch.setattr("django_workqueue.admin.jobs.JobAdminMixin.list_display", ("id",))
    jobs = JobFactory.build_batch(5000)
    type(jobs[0]).objects.bulk_create(jobs)

    with CaptureQueriesContext(connection) as captured:
        pages = walk(viewer, "job")

    assert [len(keys) for keys in pages] == [100] * 50
    assert flat(pages) == sorted((job.pk for job in jobs), reverse=True)
    statements = [query["sql"].upper() for query in captured]
    assert not [sql for sql in statements if "COUNT(" in sql or "OFFSET" in sql or "DISTINCT" in sql]
    ours = [sql for sql in statements if "DJANGO_WORKQUEUE_" in sql]
    assert all("LIMIT" in sql for sql in ours)


@pytest.mark.parametrize("model", SCREENS)
def test_number_of_statements_does_not_grow_with_the_rows(viewer, model):
    """A list of a hundred takes as many statements as a list of one, or a page would slow down row by row."""
    factory, counts = SCREENS[model], []
    for size in (1, 99):
        factory.create_batch(size)
        with CaptureQueriesContext(connection) as captured:
            response = viewer.get(page(model))
        counts.append(len(statements(captured)))

    assert len(listed(response)) == 100
    # Queues are counted and timed, by as many statements as the overview; schedules tell of their last jobs.
    assert counts[0] == counts[1] <= {"queue": 20, "schedule": 12}.get(model, 8)


@pytest.mark.parametrize("model", SCREENS)
def test_reading_takes_no_lock_and_writes_nothing(viewer, model):
    """Looking at the queue must not disturb its workers (django-background-tasks#144)."""
    row = SCREENS[model]()
    with CaptureQueriesContext(connection) as captured:
        viewer.get(page(model))
        viewer.get(page(model, row.pk))

    assert not [
        sql
        for sql in statements(captured)
        if not sql.lstrip().startswith(("SELECT", "WITH", "DECLARE")) or "FOR UPDATE" in sql or "FOR NO KEY" in sql
    ]


def test_newest_row_comes_first(viewer):
    """A list is opened to see what just happened, not what ran first (django-tasks#93)."""
    older, newer = JobFactory(priority=100), JobFactory(priority=-100)

    assert listed(viewer.get(page("job"))) == [newer.pk, older.pk]
    assert listed(viewer.get(page("job", query="?o=1"))) == [newer.pk, older.pk]


def test_count_ends_at_a_limit(viewer):
    """Nobody needs the exact length of a long backlog, and counting it reads all of it."""
    jobs = JobFactory.build_batch(1001)
    type(jobs[0]).objects.bulk_create(jobs)

    response = viewer.get(page("job"))

    assert b"1000+ results" in response.content
    assert "1000+ jobs" in " ".join(response.content.decode().split())


def test_capped_count_can_be_grouped(settings):
    """Digits are grouped from the right, where a plus sign would move the comma."""
    settings.USE_THOUSAND_SEPARATOR = True
    assert localize(CappedCount(1000)) == ">1,000"


def test_rows_added_meanwhile_do_not_shift_the_pages(viewer):
    """With OFFSET, a row that arrives between two pages shows the last row of the first page again."""
    jobs = JobFactory.create_batch(150)
    first = viewer.get(page("job"))
    JobFactory.create_batch(7)

    second = viewer.get(page("job", query=first.context["cl"].older))

    assert listed(first) + listed(second) == [job.pk for job in reversed(jobs)]
    assert second.context["cl"].older is None
    assert second.context["cl"].newest == "?"


def test_filter_stays_on_the_next_page_and_position_goes_with_a_new_filter(viewer):
    """A position belongs to one list; kept under another filter it would hide rows."""
    QueueFactory(name="mail")
    JobFactory.create_batch(101, queue="mail")
    JobFactory.create_batch(3)

    first = viewer.get(page("job", query="?queue=mail"))
    second = viewer.get(page("job", query=first.context["cl"].older))

    assert len(listed(first)) == 100
    assert len(listed(second)) == 1
    content = second.content.decode()
    assert 'name="queue" value="mail"' in content
    assert 'name="after"' not in content
    links = [
        choice["query_string"]
        for spec in second.context["cl"].filter_specs
        for choice in spec.choices(second.context["cl"])
    ]
    assert not [link for link in links if "after" in link]


@pytest.mark.parametrize("query", ["?after=x", "?from=x", "?after=2026~1", "?after=%00", "?p=7", "?all=", "?o=9.-8.x"])
def test_address_made_by_hand_is_no_error_of_the_server(viewer, query):
    """A bookmark that no longer fits leads to the list."""
    JobFactory()

    assert viewer.get(page("job", query=query), follow=True).status_code == 200


@pytest.fixture
def small_window(monkeypatch):
    """Let a filter without an index look through ten rows at a time."""
    monkeypatch.setattr(BoundedChangeList, "window", 10)


@pytest.mark.usefixtures("small_window")
@pytest.mark.parametrize(
    ("model", "factory"),
    [("job", JobFactory), ("deadletter", DeadLetterFactory), ("finishedjob", FinishedJobFactory)],
)
def test_filter_without_an_index_looks_through_a_window_at_a_time(viewer, model, factory):
    """Ten million rows may hold one match; the page says how far it looked and offers to look further back."""
    old = factory(tenant="acme")
    factory.create_batch(12)
    new = factory(tenant="acme")

    first = viewer.get(page(model, query="?q=tenant:acme"))
    second = viewer.get(page(model, query=first.context["cl"].further))

    assert listed(first) == [new.pk]
    assert "Only 10 rows were looked through." in first.content.decode()
    assert listed(second) == [old.pk]
    assert "looked through" not in second.content.decode()
    assert second.context["cl"].further is None


@pytest.mark.usefixtures("small_window")
def test_pages_inside_a_window_stay_inside_it(viewer, monkeypatch):
    """Older leads through the window, further back leads out of it."""
    monkeypatch.setattr("django_workqueue.admin.jobs.JobAdminMixin.list_per_page", 4)
    jobs = JobFactory.create_batch(25, tenant="acme")

    windows, query = [], "?q=tenant:acme"
    while query is not None:
        windows.append(flat(walk(viewer, "job", query)))
        query = viewer.get(page("job", query=query)).context["cl"].further

    assert [len(keys) for keys in windows] == [10, 10, 5]
    assert flat(windows) == [job.pk for job in reversed(jobs)]


@pytest.mark.usefixtures("small_window")
def test_condition_that_an_index_serves_needs_no_window(viewer):
    """What runs is few and old: it must be found at once behind any backlog, as must one id or key."""
    leased = JobFactory(leased=True, dedupe_key="a")
    JobFactory.create_batch(12)

    for query in (
        "?state=leased",
        "?q=key:a",
        f"?q={leased.pk}",
        f"?q=lease:{leased.lease_id}",
        "?state=leased&q=queue:default",
    ):
        assert listed(viewer.get(page("job", query=query))) == [leased.pk], query


@pytest.mark.parametrize("model", SCREENS)
def test_empty_list_says_what_to_do(viewer, model):
    """An empty table alone leaves open whether something is broken."""
    content = viewer.get(page(model)).content.decode()

    assert 'class="workqueue-empty"' in content


def test_search_without_a_match_leads_back(viewer):
    """Nothing found is not the same as nothing there."""
    JobFactory()

    content = viewer.get(page("job", query="?q=key:x")).content.decode()

    assert "Nothing matches here." in content
    assert "No job is waiting" not in content
