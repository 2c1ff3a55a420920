"""What is done after the customer has left."""

from __future__ import annotations

from typing import Any

from django.core.mail import EmailMessage

from django_workqueue import JobContext, Reject, RetryAfter, task

from . import webhooks
from .models import Order


class WebhookFailedError(Exception):
    """The seller's server did not take the delivery; another try may succeed."""


@task(queue_name="mail", takes_context=True, reject_on=(Order.DoesNotExist,))
def send_receipt(context: JobContext, order_id: int) -> None:
    """E-mail the receipt for an order."""
    order = Order.objects.select_related("shop").get(pk=order_id)
    # The queue may run a job twice when a worker dies at the wrong moment. The same Message-ID both times
    # lets the mail server see that it is the same message.
    message_id = f"<{context.job_id}@shop.example>"
    EmailMessage(
        subject=f"Your receipt for order {order.pk}",
        body=f"Thank you for your order at {order.shop}.\nYou paid {order.total}.\n",
        from_email="receipts@shop.example",
        to=[order.email],
        headers={"Message-ID": message_id},
    ).send()


@task(queue_name="webhooks", takes_context=True, reject_on=(Order.DoesNotExist,))
def deliver_webhook(context: JobContext, order_id: int) -> dict[str, Any]:
    """Tell the seller's own system about an order."""
    order = Order.objects.select_related("shop").get(pk=order_id)
    # One key for all attempts of this job: a receiver that has seen it knows the delivery for a repeat.
    headers = {"Idempotency-Key": str(context.job_id), "X-Attempt": str(context.attempt)}
    answer = webhooks.post(order.shop.webhook_url, order.as_webhook(), headers)
    if not answer.accepted:
        raise refusal(order, answer)
    return {"status": answer.status, "attempt": context.attempt}


def refusal(order: Order, answer: webhooks.Answer) -> Exception:
    """Return what the queue must know: never again, again at that time, or again when it sees fit."""
    problem = f"{order.shop.webhook_url} answered {answer.status} to {order}."
    if answer.final:
        return Reject(f"{problem} Repair the shop's address, then requeue this job.")
    if answer.retry_after_seconds is not None:
        return RetryAfter(answer.retry_after_seconds, problem)
    return WebhookFailedError(problem)
