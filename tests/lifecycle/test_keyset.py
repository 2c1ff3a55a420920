"""Positions in an ordered table."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_workqueue.lifecycle.keyset import Keyset
from django_workqueue.models import DeadLetter, Job, Queue
from tests.factories import DeadLetterFactory, JobFactory, QueueFactory

pytestmark = pytest.mark.django_db

NEWEST_DEAD = Keyset(("-died_at", "-id"))


@pytest.fixture
def letters():
    """Return dead letters, newest first, of which the middle three died at one moment."""
    now = timezone.now()
    seconds = [0, 1, 1, 1, 2]
    rows = [DeadLetterFactory(died_at=now - timedelta(seconds=each)) for each in seconds]
    return sorted(rows, key=lambda row: (row.died_at, row.id), reverse=True)


def test_after_leaves_what_comes_behind(letters):
    """Rows that share their time are told apart by id: none is shown twice or left out at the turn of a page."""
    rows = DeadLetter.objects.order_by(*NEWEST_DEAD.columns)

    for number, row in enumerate(letters):
        assert list(NEWEST_DEAD.after(rows, NEWEST_DEAD.position(row))) == letters[number + 1 :]


def test_until_leaves_what_comes_before_and_the_row_itself(letters):
    """A window holds its last row; the next window begins behind it."""
    rows = DeadLetter.objects.order_by(*NEWEST_DEAD.columns)

    for number, row in enumerate(letters):
        assert list(NEWEST_DEAD.until(rows, NEWEST_DEAD.position(row))) == letters[: number + 1]


def test_ascending_order_goes_upwards():
    """Queues are listed by name, from A on."""
    names = Keyset(("name",))
    queues = [QueueFactory(name=name) for name in ("audio", "mail", "video")]

    assert list(names.after(Queue.objects.order_by("name"), ("audio",))) == queues[1:]
    assert list(names.until(Queue.objects.order_by("name"), ("mail",))) == queues[:2]


def test_batches_cover_every_row_though_rows_go(letters):
    """Requeueing removes rows while it walks; an OFFSET would skip as many as were removed."""
    seen = []
    for batch in NEWEST_DEAD.batches(DeadLetter.objects.all(), 2):
        seen += batch
        DeadLetter.objects.filter(pk__in=[row.pk for row in batch]).delete()

    assert seen == letters


@pytest.mark.parametrize(
    ("keyset", "model", "factory"),
    [
        (NEWEST_DEAD, DeadLetter, DeadLetterFactory),
        (Keyset(("-id",)), Job, JobFactory),
        (Keyset(("name",)), Queue, lambda: QueueFactory(name="a~b c/ö")),
    ],
)
def test_position_survives_the_address(keyset, model, factory):
    """A position read back from an address is the same to the microsecond, whatever a name is made of."""
    row = factory()
    row.refresh_from_db()
    position = keyset.position(row)

    assert keyset.read(model, keyset.write(model, position)) == position


@pytest.mark.parametrize(
    "text", ["", "x", "~", "2026-01-01~7", "2026-01-01T00:00:00~00000000-0000-0000-0000-000000000000"]
)
def test_address_that_was_tampered_with_is_refused(text):
    """What is no position must not reach the database, where it would be an error of the server."""
    with pytest.raises(ValueError, match=r"no value|time zone|zip|unpack|shorter"):
        NEWEST_DEAD.read(DeadLetter, text)
