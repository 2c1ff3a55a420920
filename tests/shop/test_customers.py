"""The demonstration's customers: orders through the view, and a record of what the view has promised."""

from __future__ import annotations

import pytest

from django_workqueue.models import Job
from testproject.shop.demo.customers import REFUSING, SHOPS, Customers, open_shops
from testproject.shop.demo.endpoint import Endpoint
from testproject.shop.demo.waiting import DemoError
from testproject.shop.models import Order, Shop

pytestmark = pytest.mark.django_db


@pytest.fixture
def shops():
    """Return the shops of one run."""
    with Endpoint() as endpoint:
        return open_shops("a1b2c3", endpoint)


def test_customers_note_exactly_what_is_stored(shops):
    """Every accepted order and its jobs are on record, and a declined one leaves nothing in the database."""
    customers = Customers(shops)

    customers.place(40)

    assert customers.declined > 0
    assert len(customers.accepted) + customers.declined == 40
    assert {order for order, *_ in customers.accepted} == set(Order.objects.values_list("pk", flat=True))
    promised = {job for _, _, *jobs in customers.accepted for job in jobs}
    assert promised == {str(pk) for pk in Job.objects.values_list("pk", flat=True)}


def test_one_shop_refuses_and_each_run_has_its_own(shops):
    """The refusing shop is the one whose address says so, and a second run opens further shops."""
    refusing = [shop.name for shop in shops if "refuses" in shop.webhook_url]

    with Endpoint() as endpoint:
        open_shops("d4e5f6", endpoint)

    assert refusing == [f"{REFUSING} a1b2c3"]
    assert Shop.objects.count() == 2 * len(SHOPS)


def test_unexpected_answer_ends_the_demonstration(shops):
    """An order that is neither accepted nor declined is no order: the demonstration ends with what came."""
    shops[0].pk = -1

    with pytest.raises(DemoError, match="was answered 400"):
        Customers([shops[0]] * len(SHOPS)).place(1)
