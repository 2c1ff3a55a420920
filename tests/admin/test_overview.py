"""The overview: what is wrong, how deep and how old the queues are, and what died last."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_workqueue.admin import overview
from django_workqueue.models import Queue
from django_workqueue.store import store_for
from tests.admin.pages import Elements, page
from tests.factories import (
    DeadLetterFactory,
    JobFactory,
    LeaseFactory,
    PauseFactory,
    QueueFactory,
    QueueMinuteFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

OVERVIEW = page("queue", name="overview")


def statements(client, address):
    """Return the statements that a page takes."""
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(address).status_code == 200
    return [each["sql"] for each in captured]


def fill(queues):
    """Put something into everything that the overview shows."""
    for queue in QueueFactory.create_batch(queues):
        JobFactory.create_batch(2, queue=queue.name, task="tests.samples.add")
        QueueMinuteFactory(queue=queue.name)
    DeadLetterFactory.create_batch(queues)
    LeaseFactory.create_batch(queues)
    WorkerFactory.create_batch(queues)


def test_overview_needs_the_permission_to_see_queues(client, browser):
    """Neither strangers nor staff without it."""
    assert client.get(OVERVIEW).status_code == 302
    assert browser("view_job", "view_deadletter").get(OVERVIEW).status_code == 403


def test_overview_shows_depth_with_age(viewer):
    """Depth alone does not tell a burst from a standstill."""
    JobFactory.create_batch(3, queue="mail")
    WorkerFactory()

    found = viewer.get(OVERVIEW)

    [row] = found.context["queues"]
    assert (row.stats.queue, row.stats.ready, row.cells[0].value) == ("mail", 3, "3")
    assert row.oldest.startswith("2 min")
    assert {tile.label: tile.value for tile in found.context["tiles"]}["ready"] == "3"


def test_every_number_leads_to_what_it_counts(viewer):
    """Tiles and cells alike, none excepted: also a nought is to be looked into."""
    JobFactory(queue="mail", scheduled=True, attempts=2)
    JobFactory(queue="mail", scheduled=True)

    found = viewer.get(OVERVIEW)

    tiles = {tile.label: tile for tile in found.context["tiles"]}
    [row] = found.context["queues"]
    assert all(tile.address for tile in [*tiles.values(), *row.cells])
    assert (tiles["scheduled"].value, tiles["waiting for a retry"].value) == ("2", "1")
    for address in {tile.address for tile in [*tiles.values(), *row.cells]}:
        assert viewer.get(address).status_code == 200


def test_paused_queue_is_told_apart_from_one_without_worker(viewer):
    """Nobody is to start workers for what somebody has stopped."""
    JobFactory(queue="stopped")
    JobFactory(queue="lost")
    PauseFactory(name="stopped")

    content = viewer.get(OVERVIEW).content.decode()

    assert content.count("No worker</span>") == 1
    assert "Paused" in content
    assert "runworkers --queues lost" in content
    assert "runworkers --queues stopped" not in content


def test_what_one_may_not_see_is_not_there(browser):
    """No dead letters, and no links that end in a refusal."""
    DeadLetterFactory(task="shop.tasks.secret")
    JobFactory()

    content = browser("view_queue").get(OVERVIEW).content.decode()

    assert "shop.tasks.secret" not in content
    assert page("job") not in content
    assert page("deadletter") not in content


def test_looking_takes_the_same_statements_however_much_there_is(viewer):
    """A page that is looked at every five seconds must not be the biggest load on the database."""
    fill(1)
    few = statements(viewer, OVERVIEW)
    JobFactory.create_batch(30, queue=Queue.objects.get().name, task="tests.samples.add")
    DeadLetterFactory.create_batch(30)
    WorkerFactory.create_batch(5)

    assert len(statements(viewer, OVERVIEW)) == len(few)


@pytest.mark.postgresql
def test_number_of_queues_does_not_change_the_number_of_statements(viewer):
    """Nor does that of workers and tasks."""
    fill(1)
    few = statements(viewer, OVERVIEW)
    fill(5)

    assert len(statements(viewer, OVERVIEW)) == len(few)


def test_looking_locks_and_writes_nothing(viewer):
    """An operator at three in the morning must not hold up the workers."""
    fill(1)

    found = " ".join(statements(viewer, OVERVIEW)).upper()

    assert not [
        word for word in ("FOR UPDATE", "FOR NO KEY", "FOR SHARE", "INSERT ", "UPDATE ", "DELETE ") if word in found
    ]


def test_overview_does_not_act(operator):
    """There is nothing to post."""
    fill(1)

    page_of_operator = operator.get(OVERVIEW)

    forms = [
        each
        for tag, each in Elements(page_of_operator).found
        if tag == "form" and "workqueue" in each.get("action", "")
    ]
    assert forms == []


def test_page_works_under_a_strict_policy(viewer):
    """Neither inline style nor inline script nor handlers: default-src 'self' lets none of them through."""
    fill(1)

    for tag, attributes in Elements(viewer.get(OVERVIEW)).found:
        assert tag != "style"
        assert not (tag == "script" and not attributes.get("src"))
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_chart_stays_whole_where_digits_are_grouped(viewer, settings):
    """A comma in an attribute of SVG would break the picture."""
    settings.USE_THOUSAND_SEPARATOR = True
    settings.LANGUAGE_CODE = "de"
    QueueMinuteFactory(done=123456, failed=1)

    boxes = [each for tag, each in Elements(viewer.get(OVERVIEW)).found if tag == "rect"]

    assert len(boxes) == 2
    assert all(box[name].isdigit() for box in boxes for name in ("x", "y", "width", "height"))
    assert all(int(box["height"]) >= 2 for box in boxes)


@pytest.mark.postgresql
def test_database_that_takes_too_long_is_told_in_words(viewer, monkeypatch):
    """The statement is ended by the server, and the page says what can be done."""
    monkeypatch.setattr(overview, "warnings", lambda *_args, **_kwargs: store_for()._read("SELECT pg_sleep(60)", {}))
    monkeypatch.setattr(overview, "PATIENCE", overview.PATIENCE / 10)

    found = viewer.get(OVERVIEW)

    assert found.status_code == 200
    assert "took too long" in found.content.decode()


def test_ways_in(viewer, browser):
    """From the app's page and from the list of queues."""
    assert OVERVIEW in viewer.get("/admin/django_workqueue/").content.decode()
    assert OVERVIEW in viewer.get(page("queue")).content.decode()


def test_hostile_names_stay_text(viewer):
    """Names of queues and tasks, and what is said of workers, may hold anything."""
    script = "<script>alert(1)</script>"
    JobFactory(queue=script, task=script)
    WorkerFactory(silent=True, name=script, host=script)
    DeadLetterFactory(queue=script, task=script)

    content = viewer.get(OVERVIEW).content.decode()

    assert "<script>alert" not in content
    assert "&lt;script&gt;alert(1)" in content
