"""Lists that travel to PostgreSQL as binary arrays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from django_workqueue.store.arrays import Ids, Moments, Names, Places, Ranks

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

EAST = timezone(timedelta(hours=5, minutes=30))
LISTS = {
    "uuid": Ids([UUID(int=0), UUID(int=2**128 - 1), UUID(int=7)]),
    "smallint": Ranks([-100, 0, 100, -(2**15), 2**15 - 1]),
    "integer": Places([1, -(2**31), 2**31 - 1]),
    "timestamptz": Moments([datetime(1, 1, 2, tzinfo=UTC), datetime(2026, 2, 3, 4, 5, 6, 789_012, tzinfo=EAST)]),
    "text": Names(["", "acme", "ü{},\"' NULL", "\\N"]),
}


@pytest.mark.parametrize("element", LISTS)
def test_array_arrives_as_it_was_sent(store, element):
    """Order, bounds, empty and foreign text: the server reads what the worker meant."""
    [(there, count)] = store._rows(
        f"SELECT %(sent)s::{element}[], cardinality(%(sent)s::{element}[])", {"sent": LISTS[element]}
    )

    assert (list(there), count) == (list(LISTS[element]), len(LISTS[element]))


@pytest.mark.parametrize("element", LISTS)
def test_empty_array_arrives_empty(store, element):
    """A claim of no lanes finds nothing, and is no error."""
    [(there,)] = store._rows(f"SELECT %(sent)s::{element}[]", {"sent": type(LISTS[element])()})

    assert there == []
