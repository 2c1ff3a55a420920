"""Placing an order: one transaction for the row and its jobs."""

from __future__ import annotations

import pytest
from django.urls import reverse

from django_workqueue.models import Job
from testproject.shop import views
from testproject.shop.models import Order, Shop
from testproject.shop.payments import DECLINED_CARD, GOOD_CARD

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop():
    """Return the shop that is bought from."""
    return Shop.objects.create(name="Bakery", slug="bakery", webhook_url="http://127.0.0.1:1/hook")


@pytest.fixture
def place(client, shop):
    """Return a function that posts an order, with changes to its form."""

    def post(**changes):
        form = {"shop": shop.pk, "email": "ann@example.com", "total": "12.50", "card": GOOD_CARD}
        return client.post(reverse("shop:place_order"), {**form, **changes})

    return post


def test_order_and_both_jobs_are_stored_together(place):
    """The answer names the order and the two jobs that were enqueued for it, and all three are there."""
    answer = place()

    order = Order.objects.get()
    assert answer.status_code == 201
    assert answer.json()["order"] == order.pk
    jobs = {str(job.pk): job for job in Job.objects.all()}
    assert jobs.keys() == set(answer.json()["jobs"])
    assert {(job.queue, job.tenant) for job in jobs.values()} == {("mail", "bakery"), ("webhooks", "bakery")}
    assert all(job.decoded_args == [order.pk] for job in jobs.values())


def test_declined_card_takes_back_order_and_jobs(place):
    """A rollback after both jobs were enqueued leaves neither the order nor any job."""
    answer = place(card=DECLINED_CARD)

    assert answer.status_code == 402
    assert not Order.objects.exists()
    assert not Job.objects.exists()


def test_failed_enqueue_takes_back_the_order(place, monkeypatch):
    """An order without its jobs is never stored: if the second job cannot be enqueued, all of it goes."""

    class Broken:
        def using(self, **_):
            raise ConnectionError("no queue")

    monkeypatch.setattr(views, "deliver_webhook", Broken())

    with pytest.raises(ConnectionError):
        place()

    assert not Order.objects.exists()
    assert not Job.objects.exists()


def test_faulty_form_enqueues_nothing(place):
    """A form that does not validate is answered with its errors and stores nothing."""
    answer = place(email="nobody", card="")

    assert answer.status_code == 400
    assert answer.json()["errors"].keys() == {"email", "card"}
    assert not Job.objects.exists()


def test_repaired_address_accepts_deliveries(client):
    """The address that the demonstration offers for a broken shop takes any delivery, without CSRF token."""
    client.handler.enforce_csrf_checks = True

    answer = client.post(reverse("shop:receive_webhook"), "{}", content_type="application/json")

    assert answer.status_code == 204
