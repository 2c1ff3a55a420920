"""The page of dead letters by cause."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_workqueue.domain.outcomes import Bury
from django_workqueue.domain.states import DeathReason
from django_workqueue.models import DeadLetter
from django_workqueue.store import store_for
from tests.admin.pages import listed, page
from tests.admin.test_escaping import HOSTILE, assert_harmless
from tests.factories import DeadLetterFactory, JobFactory

pytestmark = pytest.mark.django_db


def groups(client, query=""):
    """Return the rows of the page of groups."""
    return client.get(page("deadletter", name="groups", query=query)).context["rows"]


def test_groups_tell_what_died_how_often_and_since_when(viewer):
    """Ten thousand letters of one cause are one line to a person."""
    now = timezone.now()
    for number in range(3):
        DeadLetterFactory(last_error=f"ValueError: order {number}", died_at=now - timedelta(hours=number + 1))
    DeadLetterFactory(last_error="KeyError: 'price'", died_at=now - timedelta(minutes=5))

    newest, other = groups(viewer)

    assert (newest.error, newest.size) == ("KeyError: 'price'", 1)
    assert (other.error, other.size, other.sample) == ("ValueError: order #", 3, "ValueError: order 0")
    assert "3\xa0hours ago" in other.first
    assert "1\xa0hour ago" in other.last


def test_group_shows_how_many_died_each_day(viewer):
    """Whether it goes on or is long over is seen at a glance, and told in words; what is older is left out."""
    now = timezone.now()
    for hours in (1, 2, 30, 13 * 24 + 1, 15 * 24):
        DeadLetterFactory(died_at=now - timedelta(hours=hours))

    (row,) = groups(viewer)

    assert row.deaths == "Died each day, oldest first: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2"
    assert [(box.x, box.height) for box in row.boxes] == [("0", "10"), ("72", "10"), ("78", "20")]


def test_days_of_a_large_group_are_those_of_its_newest(viewer, monkeypatch):
    """A group of a million is not read through for a picture."""
    monkeypatch.setattr("django_workqueue.lifecycle.dead_groups.DEATHS_READ", 2)
    for hours in (1, 2, 30):
        DeadLetterFactory(died_at=timezone.now() - timedelta(hours=hours))

    assert groups(viewer)[0].deaths.endswith("0, 0, 2")


def test_group_leads_to_its_letters(viewer):
    """From the cause to those who died of it."""
    letters = [DeadLetterFactory(last_error=f"ValueError: order {number}") for number in range(2)]
    DeadLetterFactory(last_error="KeyError: 'price'")
    (row,) = [each for each in groups(viewer) if each.size == 2]

    response = viewer.get(row.address)

    assert sorted(listed(response)) == sorted(letter.pk for letter in letters)
    assert b"This group" in response.content


def test_count_of_a_group_is_capped(viewer, monkeypatch):
    """A group of a million is not counted out."""
    monkeypatch.setattr("django_workqueue.lifecycle.dead_groups.COUNTED", 2)
    monkeypatch.setattr("django_workqueue.admin.dead_groups.COUNTED", 2)
    DeadLetterFactory.create_batch(4)

    assert str(groups(viewer)[0].size) == "2+"


def test_groups_come_in_pages(viewer, monkeypatch):
    """There may be hundreds of causes after a bad night."""
    monkeypatch.setattr("django_workqueue.lifecycle.dead_groups.PAGE", 2)
    for letter in "abcde":
        DeadLetterFactory(last_error=f"ValueError: {letter}")

    shown = [row.error for number in range(3) for row in groups(viewer, f"?page={number}")]

    assert sorted(shown) == [f"ValueError: {letter}" for letter in "abcde"]
    assert [row.error for row in groups(viewer, "?page=x")] == shown[:2]


def test_groups_take_a_fixed_number_of_queries(viewer, django_assert_num_queries):
    """The page costs the same with one group and with forty."""
    from django.db import connection  # noqa: PLC0415 - beside its use

    DeadLetterFactory()
    with CaptureQueriesContext(connection) as one:
        groups(viewer)
    for letter in "abcdefghij":
        DeadLetterFactory.create_batch(3, task=f"shop.tasks.{letter}")

    with django_assert_num_queries(len(one)):
        assert len(groups(viewer)) == 11


def test_empty_page_says_so(viewer):
    """Nothing died: the page says what would come here."""
    response = viewer.get(page("deadletter", name="groups"))

    assert b"No job has stopped for good" in response.content


def test_groups_need_the_permission_to_view(browser):
    """The page is a door of its own."""
    assert browser("view_job").get(page("deadletter", name="groups")).status_code == 403


def test_groups_escape_what_they_show(viewer):
    """An error quotes what users typed."""
    DeadLetterFactory(task=HOSTILE, last_error=f"ValueError: {HOSTILE}")

    assert_harmless(viewer.get(page("deadletter", name="groups")))


def test_buried_job_has_its_fingerprint():
    """The store fills it, on the one path that all burials take."""
    store = store_for()
    for number in (17, 23):
        job = JobFactory(leased=True, last_error=f"ValueError: order {number}")
        with store.transaction():
            store._bury(job, Bury(DeathReason.REJECTED).reason, store.now())

    marks = set(DeadLetter.objects.values_list("fingerprint", flat=True))

    assert len(marks) == 1
    assert marks != {""}
