"""The shop's two tasks: what reaches the outside, and how a repeat can be told from a first time."""

from __future__ import annotations

import pytest
from django.core import mail

from django_workqueue import JobContext, Reject, RetryAfter
from django_workqueue.domain.ids import new_id
from testproject.shop.demo.endpoint import Endpoint, busy_times
from testproject.shop.models import Order, Shop
from testproject.shop.tasks import deliver_webhook, send_receipt

pytestmark = pytest.mark.django_db


@pytest.fixture
def endpoint():
    """Yield a running endpoint that answers at once."""
    with Endpoint(latency_seconds=0) as server:
        yield server


def order(url):
    """Return an order of a shop whose server is at ``url``."""
    shop = Shop.objects.create(name="Bakery", slug="bakery", webhook_url=url)
    return Order.objects.create(shop=shop, email="ann@example.com", total="12.50")


def context(job_id, attempt=1):
    """Return what a worker would hand to the task."""
    return JobContext(
        job_id=job_id,
        queue="webhooks",
        tenant="bakery",
        attempt=attempt,
        max_attempts=5,
        last_error=None,
        load_result=lambda: None,
        ledger=None,
    )


def id_that_is_busy(times):
    """Return a job id whose delivery meets a busy server so often."""
    return next(job for job in iter(new_id, None) if busy_times(str(job)) == times)


def test_repeated_receipt_carries_the_same_message_id():
    """Two attempts of one job send the same Message-ID, and the job is named in it."""
    job, bought = new_id(), order("http://127.0.0.1:1/")

    for attempt in (1, 2):
        send_receipt.func(context(job, attempt), bought.pk)

    assert [message.to for message in mail.outbox] == [["ann@example.com"]] * 2
    assert {message.extra_headers["Message-ID"] for message in mail.outbox} == {f"<{job}@shop.example>"}


def test_delivery_names_its_job_at_every_attempt(endpoint):
    """The idempotency key is the job's id, whichever attempt it is; a busy server's wish is passed to the queue."""
    job, bought = id_that_is_busy(1), order(endpoint.url("bakery", refuses=False))

    with pytest.raises(RetryAfter) as raised:
        deliver_webhook.func(context(job), bought.pk)
    result = deliver_webhook.func(context(job, attempt=2), bought.pk)

    assert raised.value.delay.total_seconds() == 1
    assert result == {"status": 200, "attempt": 2}
    assert endpoint.deliveries == [(str(job), "bakery", 503), (str(job), "bakery", 200)]


def test_refused_delivery_is_rejected(endpoint):
    """A 400 can never succeed: the task rejects the job and says what to repair."""
    bought = order(endpoint.url("bakery", refuses=True))

    with pytest.raises(Reject, match=r"answered 400 to Order \d+\. Repair the shop's address"):
        deliver_webhook.func(context(new_id()), bought.pk)
