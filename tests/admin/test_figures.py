"""The page of statistics, and the jobs that workers and leases hold."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_workqueue.admin import figures
from django_workqueue.store import store_for
from tests.admin.pages import Elements, page
from tests.factories import FinishedJobFactory, JobFactory, LeaseFactory, QueueMinuteFactory, WorkerFactory

pytestmark = pytest.mark.django_db

STATISTICS, FILE = page("queue", name="statistics"), page("queue", name="csv")
RUNS = ",".join("5" if place == 4 else "0" for place in range(32))


def statements(client, address):
    """Return the statements that a page takes."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return [each["sql"] for each in captured]


def test_statistics_need_the_permission_to_see_queues(client, browser):
    """As the overview does."""
    assert client.get(STATISTICS).status_code == 302
    assert browser("view_job").get(STATISTICS).status_code == 403


def test_each_task_is_told_with_its_percentiles(viewer):
    """Of the runs that were counted; a dash where nothing was."""
    QueueMinuteFactory.create_batch(2, queue="mail", task="shop.tasks.send", done=5, failed=1, run_histogram=RUNS)

    found = viewer.get(STATISTICS)

    [row] = found.context["tasks"]
    assert (row.queue, row.passed.done, row.runs, row.waits) == ("mail", 10, ["16 ms"] * 3, ["-"] * 3)
    assert "range=24h&amp;queue=mail&amp;task=shop.tasks.send" in found.content.decode()


@pytest.mark.parametrize("period", ["1h", "6h", "24h", "7d", "30d"])
def test_every_range_can_be_narrowed(viewer, period):
    """By queue and by task."""
    QueueMinuteFactory(queue="mail", task="a")
    QueueMinuteFactory(queue="slow", task="b")

    found = viewer.get(STATISTICS, {"range": period, "queue": "mail"})

    assert [each.task for each in found.context["tasks"]] == ["a"]


def test_queues_are_told_with_what_their_tasks_add_up_to(viewer):
    """In name order; each leads to its own page."""
    QueueMinuteFactory(queue="mail", task="a", done=5, failed=1, run_histogram=RUNS)
    QueueMinuteFactory(queue="mail", task="b", done=2, dead=1)
    QueueMinuteFactory(queue="slow", task="b", done=1)

    found = viewer.get(STATISTICS)

    rows = [(row.queue, row.passed, row.runs[0]) for row in found.context["queues"]]
    assert rows == [("mail", (7, 1, 1), "16 ms"), ("slow", (1, 0, 0), "-")]
    assert "?range=24h&amp;queue=mail" in found.content.decode()


@pytest.mark.parametrize(("order", "tasks"), [("done", "abc"), ("failed", "cab"), ("time", "bac"), ("other", "abc")])
def test_tasks_are_ordered_by_what_is_asked_for(viewer, order, tasks):
    """Which of them costs the most time, or fails the most, need not be the one that runs the most."""
    QueueMinuteFactory(task="a", done=9, failed=1, run_histogram=RUNS)
    QueueMinuteFactory(task="b", done=3, run_histogram="0,0,0,0,0,0,0,0,0,0,0,0,3")
    QueueMinuteFactory(task="c", done=1, failed=8)

    found = viewer.get(STATISTICS, {"order": order})

    assert "".join(row.task for row in found.context["tasks"]) == tasks


def test_figures_are_sent_as_a_file(viewer):
    """As numbers, with the filters of the page."""
    QueueMinuteFactory(queue="mail", task="shop.tasks.send", done=5, failed=1, run_histogram=RUNS)
    QueueMinuteFactory(queue="other")

    found = viewer.get(FILE, {"queue": "mail", "range": "1h"})

    assert found["Content-Type"].startswith("text/csv")
    assert found["Content-Disposition"] == 'attachment; filename="workqueue-1h.csv"'
    [row] = csv.DictReader(StringIO(found.content.decode()))
    assert (row["queue"], row["task"], row["done"], row["failed_attempts"]) == ("mail", "shop.tasks.send", "5", "1")
    assert (row["run_seconds_total"], row["ran_seconds_p95"], row["waited_seconds_p95"]) == ("0.060", "0.016", "")


def test_file_holds_no_formula(viewer):
    """Whoever may enqueue chooses the names, and whoever opens the file in a spreadsheet must not run them."""
    QueueMinuteFactory(queue="=cmd|' /C calc'!A0", task='+HYPERLINK("http://evil")')

    rows = list(csv.reader(StringIO(viewer.get(FILE).content.decode())))

    assert rows[1][:2] == ["'=cmd|' /C calc'!A0", '\'+HYPERLINK("http://evil")']


def test_file_needs_the_permission_of_the_page(client, browser):
    """And is not found for what cannot be asked."""
    assert client.get(FILE).status_code == 302
    assert browser("view_job").get(FILE).status_code == 403


@pytest.mark.parametrize("query", ["?range=2y", "?queue=a%00b", "?task=%00"])
def test_what_cannot_be_asked_is_not_found(viewer, query):
    """And is no error of the server."""
    assert viewer.get(STATISTICS + query).status_code == viewer.get(FILE + query).status_code == 404


def test_statements_are_as_many_however_much_was_done(viewer):
    """Of whatever number of queues, tasks and workers."""
    QueueMinuteFactory()
    few = statements(viewer, STATISTICS)
    for number in range(10):
        QueueMinuteFactory(queue=f"queue-{number}", task=f"task-{number}", run_histogram=RUNS)
    FinishedJobFactory.create_batch(5)

    assert len(statements(viewer, STATISTICS)) == len(few)


def test_statistics_work_under_a_strict_policy(viewer):
    """Neither inline style nor inline script, and each chart has a title, a description and a table."""
    QueueMinuteFactory(run_histogram=RUNS, wait_histogram=RUNS)
    FinishedJobFactory()

    found = Elements(viewer.get(STATISTICS)).found

    assert not [name for _, attributes in found for name in attributes if name == "style" or name.startswith("on")]
    assert not [tag for tag, attributes in found if tag == "script" and not attributes.get("src")]
    charts = [attributes for tag, attributes in found if tag == "svg" and attributes.get("role") == "img"]
    ids = {attributes.get("id") for _, attributes in found}
    assert len(charts) == 4
    assert all(set(chart["aria-labelledby"].split()) <= ids for chart in charts)
    assert len([tag for tag, attributes in found if attributes.get("class") == "workqueue-caption"]) == 4


def test_hostile_names_stay_text(viewer):
    """In the table, in the form and in the charts."""
    script = '"><script>alert(1)</script>'
    QueueMinuteFactory(queue=script, task=script)

    for query in ({}, {"queue": script, "task": script}):
        content = viewer.get(STATISTICS, query).content.decode()
        assert "<script>alert" not in content
        assert "&lt;script&gt;alert(1)" in content


@pytest.mark.postgresql
def test_range_that_takes_too_long_is_told_in_words(viewer, monkeypatch):
    """The form stays, so that a shorter range can be chosen."""
    monkeypatch.setattr(figures, "figures", lambda *_args, **_kwargs: store_for()._read("SELECT pg_sleep(60)", {}))

    content = viewer.get(STATISTICS).content.decode()

    assert "took too long" in content
    assert 'name="range"' in content


def test_worker_and_lease_show_the_jobs_that_they_hold(viewer):
    """And not those of others."""
    worker = WorkerFactory()
    mine, other = LeaseFactory(worker=worker.pk), LeaseFactory()
    JobFactory(leased=True, lease=mine, task="shop.tasks.mine")
    JobFactory(leased=True, lease=other, task="shop.tasks.other")

    for address in (page("worker", worker.pk), page("lease", mine.pk)):
        assert [each.job.task for each in viewer.get(address).context["held"]] == ["shop.tasks.mine"]


def test_jobs_are_shown_to_those_who_may_view_jobs(browser):
    """The permission to see workers does not open jobs."""
    worker = WorkerFactory()
    JobFactory(leased=True, lease=LeaseFactory(worker=worker.pk), task="shop.tasks.secret")

    assert "shop.tasks.secret" not in browser("view_worker").get(page("worker", worker.pk)).content.decode()
