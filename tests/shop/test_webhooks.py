"""Posting to other people's servers, over real HTTP, and what each answer means to the queue."""

from __future__ import annotations

import pytest

from django_workqueue import Reject, RetryAfter
from testproject.shop import webhooks
from testproject.shop.demo.endpoint import Endpoint, busy_times
from testproject.shop.models import Order, Shop
from testproject.shop.tasks import WebhookFailedError, refusal

ORDER = Order(pk=7, shop=Shop(slug="bakery", webhook_url="http://127.0.0.1/hook"))
PATIENT = next(f"job-{n}" for n in range(1000) if busy_times(f"job-{n}") == 0)
UNLUCKY = next(f"job-{n}" for n in range(1000) if busy_times(f"job-{n}") == 2)


@pytest.fixture
def endpoint():
    """Yield a running endpoint that answers at once."""
    with Endpoint(latency_seconds=0) as server:
        yield server


def post(url, job):
    """Deliver something on behalf of a job."""
    return webhooks.post(url, {"order": 7}, {"Idempotency-Key": job})


def test_working_server_is_delivered_to(endpoint):
    """A 200 is a delivery, and the endpoint knows which job of which shop made it."""
    answer = post(endpoint.url("bakery", refuses=False), PATIENT)

    assert answer.accepted
    assert endpoint.deliveries == [(PATIENT, "bakery", 200)]


def test_busy_server_says_when_to_come_back(endpoint):
    """A 503 carries Retry-After, and after the promised number of refusals the same job gets through."""
    url = endpoint.url("bakery", refuses=False)

    answers = [post(url, UNLUCKY) for _ in range(3)]

    assert answers == [(503, 1.0), (503, 1.0), (200, None)]


def test_refusing_server_never_gives_in(endpoint):
    """A shop whose server is set to refuse is answered 400, which is final."""
    answer = post(endpoint.url("hardware", refuses=True), PATIENT)

    assert answer.status == 400
    assert answer.final


def test_unreachable_server_is_an_error():
    """No answer at all is an exception, which the queue retries with its own backoff."""
    with pytest.raises(OSError):  # noqa: PT011 - any of its kind
        post("http://127.0.0.1:1/hook", PATIENT)


@pytest.mark.parametrize(
    ("answer", "signal"),
    [
        (webhooks.Answer(400), Reject),
        (webhooks.Answer(404), Reject),
        (webhooks.Answer(301), Reject),
        (webhooks.Answer(408), WebhookFailedError),
        (webhooks.Answer(409), WebhookFailedError),
        (webhooks.Answer(429, 30.0), RetryAfter),
        (webhooks.Answer(500), WebhookFailedError),
        (webhooks.Answer(503, 0.0), RetryAfter),
    ],
)
def test_status_decides_between_never_later_and_again(answer, signal):
    """4xx other than 408, 409 and 429 can never succeed; Retry-After is obeyed; the rest backs off."""
    assert not answer.accepted

    raised = refusal(ORDER, answer)

    assert type(raised) is signal
    assert f"answered {answer.status}" in str(raised)
    if answer.retry_after_seconds is not None:
        assert raised.delay.total_seconds() == answer.retry_after_seconds
