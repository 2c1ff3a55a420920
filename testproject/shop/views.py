"""The shop's doors."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .forms import OrderForm
from .payments import CardDeclinedError, charge
from .tasks import deliver_webhook, send_receipt


@require_POST
def place_order(request: HttpRequest) -> JsonResponse:
    """Take an order: the row and its two jobs are stored together, or none of them is."""
    form = OrderForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=400)
    try:
        return JsonResponse(store_order(form), status=201)
    except CardDeclinedError as refusal:
        return JsonResponse({"errors": {"card": [str(refusal)]}}, status=402)


@transaction.atomic
def store_order(form: OrderForm) -> dict[str, object]:
    """Store the order, enqueue its jobs, charge the card. A declined card takes all of it back."""
    order = form.save()
    tenant = order.shop.slug
    jobs = [task.using(tenant=tenant).enqueue(order.pk) for task in (send_receipt, deliver_webhook)]
    charge(form.cleaned_data["card"], order.total)
    return {"order": order.pk, "jobs": [job.id for job in jobs]}


@csrf_exempt
@require_POST
def receive_webhook(_request: HttpRequest) -> HttpResponse:
    """Accept any delivery: an address to give to a shop whose own server refuses."""
    return HttpResponse(status=204)
